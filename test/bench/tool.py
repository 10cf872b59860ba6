#!/usr/bin/env python3
"""What the tool costs, beside the compiler and clang-tidy, on the examples and on a generated project of 40 units.

  scripts/bench tool [--quick] [--tool PATH] [--tidy-check CHECK] [--no-compiler]

For each project, in one run:
  -fsyntax-only      clang++ over every unit, one after the other
  clang-tidy         the same with one check
  cold               the tool without cache and precompiled header (--no-cache --no-pch)
  first-warm         the first run of a user: nothing in the cache folder, LibTorch's header is precompiled
  warm               the header is there, no unit is
  one file changed   all is there, and then a source gets another line
  unchanged          nothing has changed since the last run

CPU is user and system time of the whole process tree, in seconds; ratios are of CPU to -fsyntax-only's. Memory is that of
the largest process. Where a program is edited the tool also verifies the result, which parses what is edited once more;
`no verify` is the same run without. Of the generated project the compiler and clang-tidy see some units, scaled by their kind.

The user's cache isn't touched. A slow machine is no failure, and neither is a goal missed; the exit status is 1 if a run
itself goes wrong: another exit status than expected, or a diff that differs between runs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import generate

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GOAL_WARM, GOAL_COLD, GOAL_UNCHANGED_MS = 0.05, 0.5, 50
# Of the generated project: sources that the compiler sees, by what their units do.
SAMPLE = {
    "trains": ["vision/train.cpp", "tabular/step.cpp"],
    "torch": ["common/points.cpp", "audio/net.cpp"],
    "plain": ["base/csv.cpp", "tools/width.cpp"],
}


class Wrong(Exception):
    pass


class Cost:
    def __init__(self, cpu=0.0, wall=0.0, memory=0):
        self.cpu, self.wall, self.memory = cpu, wall, memory

    def add(self, other, times=1.0):
        self.cpu += other.cpu * times
        self.wall += other.wall * times
        self.memory = max(self.memory, other.memory)


def measure(command, cwd, env=None, expect=(0,)):
    """Runs it; what it and its children cost, and its standard output."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        # The usage of a process that was waited for holds that of the children for which it waited.
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        text = out.read()
        if process.returncode not in expect:
            raise Wrong(
                "exit status %d of: %s\n%s"
                % (process.returncode, " ".join(command), err.read().decode("utf-8", "replace")[-2000:])
            )
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024), text


class Table:
    def __init__(self):
        self.reference = None

    def title(self, text):
        self.reference = None
        print("\n" + text)
        print("  %-34s %9s %9s %8s %9s  %s" % ("", "CPU s", "wall s", "ratio", "peak MB", "goal"), flush=True)

    def row(self, name, cost, goal=None, ms=False):
        ratio = cost.cpu / self.reference.cpu if self.reference and self.reference.cpu else None
        wanted = ""
        if goal is not None and ms:
            wanted = "<= %d ms: %s" % (goal, "met" if cost.wall * 1000 <= goal else "missed")
        elif goal is not None and ratio is not None:
            wanted = "<= %g: %s" % (goal, "met" if ratio <= goal else "missed")
        print(
            "  %-34s %9.3f %9s %8s %9.0f  %s"
            % (
                name,
                cost.cpu,
                "%.1f ms" % (cost.wall * 1000) if ms else "%.2f" % cost.wall,
                "" if ratio is None else "%.4f" % ratio,
                cost.memory,
                wanted,
            ),
            flush=True,
        )

    @staticmethod
    def line(text):
        print("  " + text, flush=True)


class Bench:
    def __init__(self, arguments, base):
        self.a, self.base = arguments, base
        self.table = Table()
        self.caches = 0
        torch = next(
            (
                os.path.join(p, "..", "..", "include")
                for p in os.environ.get("CMAKE_PREFIX_PATH", "").split(":")
                if p.rstrip("/").endswith("torch/share/cmake")
            ),
            None,
        )
        if torch is None or not os.path.exists(
            os.path.join(torch, "torch", "csrc", "api", "include", "torch", "torch.h")
        ):
            raise Wrong("LibTorch isn't found; run this as scripts/bench tool, after scripts/setup")
        torch = os.path.realpath(torch)
        self.includes = [torch, os.path.join(torch, "torch", "csrc", "api", "include")]

    # Projects.

    def examples(self):
        for name in ("mnist", "regression", "sequence_classification"):
            folder = os.path.join(self.base, name)
            shutil.copytree(
                os.path.join(ROOT, "examples", name), folder, ignore=shutil.ignore_patterns("build*", "data")
            )
            build = os.path.join(folder, "build")
            os.mkdir(build)
            units = []
            for source in sorted(f for f in os.listdir(folder) if f.endswith(".cpp")):
                output = "CMakeFiles/%s.dir/%s.o" % (name, source)
                path = os.path.join(folder, source)
                units.append(
                    {
                        "directory": build,
                        "file": path,
                        "output": output,
                        "kind": "trains",
                        "arguments": ["/usr/bin/c++"]
                        + [f for d in self.includes for f in ("-isystem", d)]
                        + ["-std=gnu++17", "-o", output, "-c", path],
                    }
                )
            with open(os.path.join(build, "compile_commands.json"), "w", encoding="utf-8") as f:
                json.dump([{k: v for k, v in u.items() if k != "kind"} for u in units], f)
            with open(os.path.join(build, "CMakeCache.txt"), "w", encoding="utf-8") as f:
                f.write("CMAKE_HOME_DIRECTORY:INTERNAL=%s\n" % folder)
            main = name + ".cpp" if name != "sequence_classification" else "main.cpp"
            yield "examples/" + name, folder, units, None, main

    def project(self):
        folder = os.path.join(self.base, "models")
        units = generate.generate(folder, self.includes)
        return "generated project", folder, units, SAMPLE, "vision/train.cpp"

    # What others cost.

    def sampled(self, units, sample):
        """Units to look at, and how many each stands for."""
        if sample is None:
            return [(u, 1.0) for u in units]
        chosen = []
        for kind, sources in sample.items():
            of_kind = [u for u in units if u["kind"] == kind]
            some = [u for u in of_kind if u["file"].endswith(tuple("/" + s for s in sources))]
            chosen += [(u, len(of_kind) / len(some)) for u in some]
        return chosen

    def over_units(self, units, sample, command):
        cost = Cost()
        for unit, times in self.sampled(units, sample):
            flags = [f for f in unit["arguments"][1:-2]]
            del flags[flags.index("-o") : flags.index("-o") + 2]
            cost.add(measure(command(flags, unit["file"]), unit["directory"])[0], times)
        return cost

    # What the tool costs.

    def new_cache(self):
        self.caches += 1
        path = os.path.join(self.base, "cache-%d" % self.caches)
        os.mkdir(path)
        return path

    def tool(self, folder, cache, *options):
        env = dict(os.environ, XDG_CACHE_HOME=cache, GIT_CEILING_DIRECTORIES=self.base)
        return measure([self.a.tool, "-p", "build", *options], folder, env, expect=(0, 1))

    @staticmethod
    def forget(cache):
        """What has been read; the precompiled header stays."""
        for name in ("units", "runs", "lists"):
            shutil.rmtree(os.path.join(cache, "accelerate-migrate", name), ignore_errors=True)

    def same(self, what, got, want):
        if got != want:
            raise Wrong(
                "the diff of the run '%s' isn't that of the cold run:\n%s"
                % (what, got.decode("utf-8", "replace")[:2000])
            )

    def one(self, name, folder, units, sample, changed):
        t = self.table
        torch = sum(u["kind"] != "plain" for u in units)
        t.title(
            "%s: %d unit%s%s"
            % (
                name,
                len(units),
                "s"[: len(units) != 1],
                (
                    ""
                    if sample is None
                    else ", %d of them with LibTorch, %d of these train"
                    % (torch, sum(u["kind"] == "trains" for u in units))
                ),
            )
        )
        if sample is not None:
            t.line(
                "(-fsyntax-only and clang-tidy: measured on %d units, scaled to all by kind)"
                % len(self.sampled(units, sample))
            )
        if not self.a.no_compiler:
            t.reference = self.over_units(
                units, sample, lambda flags, path: [self.a.clang, "-fsyntax-only", "-w"] + flags + [path]
            )
            t.row("%s -fsyntax-only" % os.path.basename(self.a.clang), t.reference)
            if self.a.tidy:
                tidy = self.over_units(
                    units,
                    sample,
                    lambda flags, path: [
                        self.a.tidy,
                        "--quiet",
                        "--checks=-*," + self.a.tidy_check,
                        "--system-headers=0",
                        path,
                        "--",
                    ]
                    + flags,
                )
                t.row("clang-tidy, %s" % self.a.tidy_check, tidy)
            else:
                t.line("clang-tidy is skipped: it isn't installed (Debian: clang-tidy-19)")

        empty = self.new_cache()
        cold, diff = self.tool(folder, empty, "--no-cache", "--no-pch")
        if not diff:
            raise Wrong("%s: the tool edits nothing" % name)
        t.row("cold", cold, GOAL_COLD)
        cost, out = self.tool(folder, empty, "--no-cache", "--no-pch", "--no-verify")
        self.same("cold, no verify", out, diff)
        t.row("cold, no verify", cost, GOAL_COLD)

        for suffix, options in (("", ()), (", no verify", ("--no-verify",))):
            cache = self.new_cache()
            cost, out = self.tool(folder, cache, *options)
            self.same("first-warm" + suffix, out, diff)
            t.row("first-warm" + suffix, cost)
            self.forget(cache)
            cost, out = self.tool(folder, cache, *options)
            self.same("warm" + suffix, out, diff)
            t.row("warm" + suffix, cost, GOAL_WARM)
            path = os.path.join(folder, changed)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            with open(path, "a", encoding="utf-8") as f:
                f.write("\n\n\n\n// Another line, far from what is edited.\n")
            cost, out = self.tool(folder, cache, *options)
            t.row("one file changed" + suffix, cost)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            if not out:
                raise Wrong("%s: nothing is edited where a file has changed" % name)
            if not suffix:
                best, out = self.smallest(lambda: self.tool(folder, cache))
                self.same("unchanged", out, diff)
                t.row("unchanged (best of %d)" % self.a.repeat, best, GOAL_UNCHANGED_MS, ms=True)
            shutil.rmtree(cache)
        floor, _ = self.smallest(lambda: measure([self.a.tool, "--version"], folder))
        t.row("the tool's --version (the floor)", floor, ms=True)

    def smallest(self, run):
        run()  # the first one may still have to look
        costs = [run() for _ in range(self.a.repeat)]
        return min(costs, key=lambda c: c[0].wall)

    def all(self):
        print("tool: %s; CPU is of the whole process tree" % self.a.tool)
        for one in self.examples():
            self.one(*one)
        if not self.a.quick:
            self.one(*self.project())


def main():
    p = argparse.ArgumentParser(
        prog="scripts/bench tool", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--quick", action="store_true", help="the examples alone")
    p.add_argument(
        "--tool",
        default=os.path.join(ROOT, "build", "release", "bin", "accelerate-migrate"),
        help="the tool (default: that of build/release)",
    )
    p.add_argument("--clang", default="clang++-19")
    p.add_argument(
        "--tidy",
        default=shutil.which("clang-tidy-19") or shutil.which("clang-tidy"),
        help="clang-tidy (default: the installed one)",
    )
    p.add_argument("--tidy-check", default="readability-braces-around-statements", metavar="CHECK")
    p.add_argument("--no-compiler", action="store_true", help="the tool's runs alone: no ratios")
    p.add_argument(
        "--repeat", type=int, default=5, metavar="N", help="unchanged runs, of which the smallest counts (default: 5)"
    )
    a = p.parse_args()
    a.tool = os.path.abspath(a.tool)
    if not os.access(a.tool, os.X_OK):
        p.error("no such program: %s; build it (scripts/build) or name it with --tool" % a.tool)
    base = os.path.realpath(tempfile.mkdtemp(prefix="accelerate-migrate-bench-"))
    try:
        Bench(a, base).all()
    except Wrong as e:
        print("bench: error: %s" % e, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
