#!/usr/bin/env python3
"""Mutates the tool's inputs and checks that it stays well-behaved, for a bounded time.

  mutate.py --tool PATH [--seconds N] [--seed S] [--case N] [--failures DIR]

The inputs are those of test/lit, with its mock of LibTorch's headers: sources, compile databases, CMakeLists.txt,
presets, styles, rule files and the tool's own cache. Whatever is in them, the tool must
  - end within 20 s, with an exit status from 0 to 4, and not by a signal;
  - change nothing, unless --in-place is given; then the tree is what the printed diff makes of it, or untouched;
  - print a diff that `git apply` takes;
  - print the same when it is run again, with what it has cached and without.
A unit is parsed in a process of its own: crashes there are told apart by a second run in one process. Those inside
Clang are counted; those inside the tool's own functions are failures.

Every failure is kept below --failures with its input and `repeat.sh`. Case N of seed S is always the same input.
"""

import argparse
import collections
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import mutations
from cases import Case, load_rules, load_seeds

LIMIT = 20
# What stands below every unit's parse in a stack; any other function of the tool's is at fault.
FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ (.*)$", re.MULTILINE)
HARMLESS = re.compile(
    r"parseUnit|precompiledPrefix|anonymous namespace\)::build|runJobs|Reader::|Migrator::run|Run::|migrate::run\(|"
    r"function_ref|shouldSkipFunctionBody|HandleTranslationUnit|CreateASTConsumer|BeginInvocation|beChild"
)


class Result(collections.namedtuple("Result", "code out err")):
    pass


def read_tree(folder):
    found = {}
    for at, folders, files in os.walk(folder):
        folders.sort()
        for name in files:
            path = os.path.join(at, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, folder)] = f.read()
    return found


def write_tree(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for path, text in files.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(text)


class Fuzzer:
    def __init__(self, arguments):
        self.a = arguments
        self.seeds, self.rules = load_seeds(), load_rules()
        self.base = tempfile.mkdtemp(prefix="accelerate-migrate-fuzz-")
        self.work = os.path.join(self.base, "work")
        self.cache = os.path.join(self.base, "cache")
        self.runs, self.failed = 0, 0
        self.kinds, self.codes = collections.Counter(), collections.Counter()
        self.signatures = collections.Counter()
        self.clang, self.shortest = collections.Counter(), {}
        self.refusals = {}  # what verification found: message without names and numbers -> (bytes, case)

    def run(self, options, cache=None, again=True):
        """The tool's result; None if it doesn't end."""
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": self.base,
            "LC_ALL": "C.UTF-8",
            "XDG_CACHE_HOME": cache or self.cache,
            "GIT_CEILING_DIRECTORIES": self.base,
            "LLVM_SYMBOLIZER_PATH": self.a.symbolizer,
        }
        try:
            process = subprocess.Popen(
                [self.a.tool] + options,
                cwd=self.work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as e:
            sys.exit("mutate: error: '%s' can't be run: %s" % (self.a.tool, e))
        try:
            out, err = process.communicate(timeout=LIMIT if again else 2 * LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            # A machine with much else to do isn't the tool's fault: twice it must be.
            return self.run(options, cache, again=False) if again else None
        return Result(process.returncode, out, err)

    def fail(self, case, name, what, options, result=None, first=None):
        self.failed += 1
        frames = [f for f in FRAME.findall(result.err.decode("utf-8", "replace"))] if result else []
        ours = [re.sub(r"[(<].*", "", f) for f in frames if "migrate::" in f][:2]
        signature = what.split(":")[0] + (" in " + ", ".join(ours) if ours else "")
        self.signatures[signature] += 1
        folder = os.path.join(self.a.failures, "%s-%s" % (self.a.seed, name))
        print("FAILED case %s (%s): %s%s" % (name, case.kind, what, " in " + ", ".join(ours) if ours else ""))
        if self.signatures[signature] > 3:
            return
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(
            self.base if case.mutate_cache else self.work,
            os.path.join(folder, "input"),
            ignore=lambda at, _: ["cache", "patched"] if at == self.base else [],
        )
        if not case.mutate_cache:
            write_tree(os.path.join(folder, "input"), case.before)
        with open(os.path.join(folder, "repeat.sh"), "w") as f:
            f.write(
                "#!/bin/sh\n# %s\n# The paths in the input are those of the first run: it is put there again.\n" % what
            )
            f.write('here=$(cd "$(dirname "$0")" && pwd)\n')
            place = self.base if case.mutate_cache else self.work
            f.write(
                'rm -rf %s && mkdir -p %s && cp -r "$here/input/." %s && cd %s || exit\n'
                % ((shlex.quote(place),) * 3 + (shlex.quote(self.work),))
            )
            if case.mutate_cache:
                f.write("export XDG_CACHE_HOME=%s\n" % shlex.quote(os.path.join(self.base, "own")))
            f.write("exec %s %s\n" % (shlex.quote(self.a.tool), " ".join(map(shlex.quote, options))))
        for which, one in (("std", result), ("first-std", first)):
            for suffix in ("out", "err") if one else ():
                with open(os.path.join(folder, which + suffix), "wb") as f:
                    f.write(getattr(one, suffix))

    def one(self, number):
        name = str(number)
        rng = random.Random("%s:%s" % (self.a.seed, number))
        case = Case(self.seeds, self.rules, rng, self.work)
        write_tree(self.work, case.files)
        case.before = read_tree(self.work)
        self.kinds[case.kind] += 1
        cache = os.path.join(self.base, "own") if case.kind in ("headers", "cache") else None
        try:
            if case.mutate_cache:
                self.with_broken_cache(case, name, cache)
            else:
                self.check(case, name, cache)
        finally:
            if cache:
                shutil.rmtree(cache, ignore_errors=True)

    def sane(self, case, name, options, result, cache):
        """The exit status, and the tree as it was; False if that is a failure."""
        self.runs += 1
        if result is None:
            self.fail(case, name, "doesn't end: more than %d s" % LIMIT, options)
            return False
        self.codes[result.code] += 1
        if result.code == 4:
            self.note_refusal(case, name, result)
        if result.code not in range(5):
            self.fail(case, name, "exit status %d" % result.code, options, result)
            return False
        if b"reading this unit" in result.err and not self.crash(case, name, options, result, cache):
            return False
        return True

    def note_refusal(self, case, name, result):
        """Verification did its work, but the edits that it took back were wrong: worth a look."""
        for line in re.findall(rb".*\[AM09\d\d [a-z-]+\]", result.err):
            message = re.sub(rb"`[^`]*`|\S*\.(cpp|h)\S*|\d+:\d+|:\d+", b"...", line).decode("utf-8", "replace")
            size = self.size(case)
            if message not in self.refusals or size < self.refusals[message][0]:
                self.refusals[message] = (size, name)

    @staticmethod
    def size(case):
        return sum(len(t) for p, t in case.files.items() if p.endswith((".cpp", ".h")) and not p.startswith("mock/"))

    def unchanged(self, case, name, options, result):
        after = read_tree(self.work)
        if after == case.before:
            return True
        odd = sorted(set(after) ^ set(case.before)) or sorted(p for p in after if after[p] != case.before[p])
        self.fail(case, name, "changes %s without --in-place" % odd[:3], options, result)
        return False

    def crash(self, case, name, options, result, cache):
        """A unit's process ended badly: in Clang, or in code of ours?"""
        how = re.search(rb"reading this unit (.*)", result.err).group(1).decode()
        split = options.index("--") if "--" in options else len(options)
        plain = options[:split] + ["--no-isolate", "--no-cache"] + options[split:]
        second = self.run(plain, cache=cache)
        if second is None or second.code in range(5):
            self.fail(case, name, "a unit %s, but not in one process" % how, options, result)
            return False
        frames = FRAME.findall(second.err.decode("utf-8", "replace"))
        inner = [f for f in frames if "signal" not in f.lower() and "PrintStackTrace" not in f]
        if any("migrate::" in f and not HARMLESS.search(f) for f in inner):
            self.fail(case, name, "a unit %s" % how, plain, second)
            return False
        where = re.sub(r"[(<].*", "", next((f for f in inner if "clang::" in f), "unknown"))
        self.clang[where] += 1
        size = self.size(case)
        if where not in self.shortest or size < self.shortest[where][0]:
            self.shortest[where] = (size, name)
        return True

    def check(self, case, name, cache):
        cached = case.rng.random() < 0.5
        options = case.command(*([] if cached else ["--no-cache"]))
        first = self.run(options, cache=cache)
        if not self.sane(case, name, options, first, cache) or not self.unchanged(case, name, options, first):
            return
        second = self.run(options, cache=cache)
        if not self.sane(case, name, options, second, cache):
            return
        if second != first:
            self.fail(
                case,
                name,
                "a second run prints something else: %s" % self.difference(first, second),
                options,
                second,
                first,
            )
            return
        if case.json:
            try:
                json.loads(first.out or (b"{}" if first.code == 2 else b""))
            except ValueError as e:
                self.fail(case, name, "no JSON document: %s" % e, options, first)
            return
        if case.dump:
            return
        if case.plain and first.code in (0, 1):
            self.plain(case, name, cache, first)
        self.edits(case, name, options, first, cache)

    def plain(self, case, name, cache, first):
        """Without any of what makes it quick: the same edits, the same findings. Sources with errors aside: a program
        without training isn't parsed, and errors in what is precompiled are other errors."""
        options = case.command("--no-cache", "--no-pch", "--no-skip", "--no-prefilter")
        slow = self.run(options, cache=cache)
        if (
            self.sane(case, name, options, slow, cache)
            and b"doesn't parse" not in slow.err + first.err
            and slow != first
        ):
            self.fail(
                case,
                name,
                "a plain parse prints something else: %s" % self.difference(first, slow),
                options,
                slow,
                first,
            )

    def difference(self, a, b):
        if a.code != b.code:
            return "exit status %d, then %d" % (a.code, b.code)
        return "another diff" if a.out != b.out else "other findings"

    def edits(self, case, name, options, first, cache):
        patched = case.before
        if first.out:
            copy = os.path.join(self.base, "patched")
            write_tree(copy, case.before)
            git = subprocess.run(
                ["git", "apply", "--whitespace=nowarn", "-"],
                cwd=copy,
                input=first.out,
                capture_output=True,
                env=dict(os.environ, GIT_CEILING_DIRECTORIES=self.base),
            )
            if git.returncode:
                self.fail(
                    case,
                    name,
                    "git doesn't take the diff: " + git.stderr.decode("utf-8", "replace").strip()[:200],
                    options,
                    first,
                )
                return
            patched = read_tree(copy)
        if not case.in_place:
            return
        options = case.command("--in-place", "--no-cache")
        result = self.run(options, cache=cache)
        if not self.sane(case, name, options, result, cache):
            return
        after = read_tree(self.work)
        want = case.before if result.code == 2 else patched
        if after != want:
            odd = sorted(p for p in set(after) | set(want) if after.get(p) != want.get(p))
            self.fail(case, name, "in place %s isn't what the diff says" % odd[:3], options, result)
            return
        if result.code in (0, 1) and "--no-verify" not in options and first.out:
            options = case.command("--no-cache")
            again = self.run(options, cache=cache)
            if self.sane(case, name, options, again, cache) and again.out:
                self.fail(case, name, "a second migration isn't empty", options, again)

    def with_broken_cache(self, case, name, cache):
        """What lies in the cache can be anything: the answer stays the same."""
        options = case.command()
        first = self.run(options, cache=cache)
        if not self.sane(case, name, options, first, cache):
            return
        rng = case.rng
        files = sorted(read_tree(cache)) if os.path.isdir(cache) else []
        for path in rng.sample(files, min(len(files), rng.randrange(1, 4))):
            full = os.path.join(cache, path)
            with open(full, "rb") as f:
                text = f.read()
            how = rng.choice(
                [mutations.truncate, mutations.truncate, mutations.random_bytes, mutations.odd_bytes, None]
            )
            os.remove(full)
            if how is not None:
                with open(full, "wb") as f:
                    f.write(how(rng, text))
            elif rng.random() < 0.5:
                os.mkdir(full)
        if rng.random() < 0.5:
            shutil.rmtree(
                os.path.join(cache, "accelerate-migrate", rng.choice(["runs", "units", "lists"])), ignore_errors=True
            )
        for _ in range(2):
            second = self.run(options, cache=cache)
            if not self.sane(case, name, options, second, cache) or not self.unchanged(case, name, options, second):
                return
            # Errors in sources read differently without the precompiled header that is lost.
            if second != first and (second.code != first.code or b"doesn't parse" not in first.err):
                self.fail(
                    case,
                    name,
                    "a damaged cache changes the answer: %s" % self.difference(first, second),
                    options,
                    second,
                    first,
                )
                return

    def all(self):
        end = time.monotonic() + self.a.seconds
        number = 0
        while time.monotonic() < end:
            self.one(number)
            number += 1
        return number


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tool", required=True)
    p.add_argument("--seconds", type=float, default=30)
    p.add_argument("--seed", default="0")
    p.add_argument("--case", type=int, help="run just this one")
    p.add_argument("--failures", default="fuzz-failures", help="folder for what fails (default: fuzz-failures)")
    p.add_argument("--symbolizer", default=shutil.which("llvm-symbolizer") or "/usr/lib/llvm-19/bin/llvm-symbolizer")
    a = p.parse_args()
    a.tool, a.failures = os.path.abspath(a.tool), os.path.abspath(a.failures)
    if not os.access(a.tool, os.X_OK):
        p.error("no such program: %s" % a.tool)
    fuzzer = Fuzzer(a)
    try:
        if a.case is not None:
            fuzzer.one(a.case)
        else:
            cases = fuzzer.all()
            print(
                "%d cases (%s), exit statuses %s"
                % (
                    cases,
                    ", ".join("%d %s" % (n, k) for k, n in sorted(fuzzer.kinds.items())),
                    ", ".join("%d: %d" % c for c in sorted(fuzzer.codes.items())),
                )
            )
    finally:
        shutil.rmtree(fuzzer.base, ignore_errors=True)
    for where, count in fuzzer.clang.most_common():
        size, name = fuzzer.shortest[where]
        print("Clang crashed %d times in %s; the shortest is case %s (%d bytes)" % (count, where, name, size))
    for message, (size, name) in sorted(fuzzer.refusals.items()):
        print("verification said (shortest: case %s, %d bytes): %s" % (name, size, message[:200]))
    for signature, count in fuzzer.signatures.most_common():
        print("%5d x %s" % (count, signature))
    print("%d runs, %d failed" % (fuzzer.runs, fuzzer.failed))
    return 1 if fuzzer.failed else 0


if __name__ == "__main__":
    sys.exit(main())
