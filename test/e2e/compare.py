#!/usr/bin/env python3
"""Migrates a project and tells whether its programs get the verdicts that they should, and still train the same.

  compare.py --tool T --launcher L --runtime-prefix-or-build DIR --example examples/mnist --work DIR
             [--ranks 1,2,3] [--data DIR] [-- program arguments]

In --work: builds a copy of the project (project/, a git repository) as it is, runs its programs (runs/*), migrates
it (the diff is kept as migration.diff), builds it again in the same build folder, as its user would, and runs the
programs again (those of the first build stay in original/). Alone, a migrated one must print and save the same bits; on
ranks the same text, with numbers and weights within the tolerance. Prints a table and, last, "agree" or "differ" (exit
code 0 or 1; 2 for wrong usage).
Run it with $ACCELERATE_MIGRATE_VENV/bin/python: saved weights are read by its torch.

examples.json tells of each folder:
  tolerance   relative, of numbers and weights on ranks (--tolerance overrides it; 1e-4)
  cmake       options of the first configuration; mostly Clang without optimisation, which builds in a third of the time
  programs    by name (the target's):
    verdict   the tool's; "migrated" if it isn't there. Only migrated programs are built and run.
    findings  what the tool finds in the program's sources, "CODE file", each once; [] if it isn't there
    args      of a run; {data} is the folder of the examples' data
    runs      how often it is run, in the same folder: 2 for a program that goes on where it stopped
    outputs   files that must be saved, and hold the same weights
    seeds     of a program that draws otherwise on ranks (dropout), and takes a seed as its last argument: the original is
              run with each; each number that the migrated one prints on ranks must lie within four deviations of theirs
"""

import argparse
import dataclasses
import fnmatch
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b)")
# What the launcher or the runtime may leave beside a program's own files: what the other ranks print.
RANK_LOGS = ("accelerate*", "*rank*")


class Failure(Exception):
    """Why a check did not pass; `difference` if it is a matter of numbers."""

    def __init__(self, text, difference=0.0):
        super().__init__(text)
        self.difference = difference


@dataclasses.dataclass
class Done:
    code: int
    out: bytes
    err: bytes
    seconds: float


def execute(command, cwd, timeout, env=None):
    """Runs a command in a process group of its own, so that a timeout ends its children as well."""
    started = time.monotonic()
    command = [str(word) for word in command]
    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:  # a child that left the group holds the pipes
            out = err = b""
        raise Failure(f"no end after {timeout:.0f} s: {' '.join(command)}\n{tail(out)}{tail(err)}") from None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return Done(process.returncode, out, err, time.monotonic() - started)


def tail(output, lines=30):
    text = "\n".join(output.decode(errors="replace").replace("\r", "\n").splitlines()[-lines:])
    return text + "\n" if text else ""


def must(command, cwd, timeout, env=None):
    done = execute(command, cwd, timeout, env)
    if done.code != 0:
        raise Failure(f"exit code {done.code}: {' '.join(map(str, command))}\n{tail(done.out)}{tail(done.err)}")
    return done


# --- comparing ----------------------------------------------------------------------------------------------


def pieces(line):
    """A line as its text and its numbers: 'loss 0.5' -> (['loss', ''], ['0.5'])."""
    return [" ".join(text.split()) for text in NUMBER.split(line)], NUMBER.findall(line)


def relative(a, b):
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(abs(a), abs(b))


def last_digit(a, b):
    """What rounding to the printed digits may add to the difference of two numbers; only for four and more decimals,
    or it would hide a real difference."""
    if "e" in (a + b).lower():
        return 0.0
    decimals = min(len(x.partition(".")[2]) for x in (a, b))
    return 1.001 * 10.0**-decimals if decimals >= 4 else 0.0


def compare_text(expected, actual, tolerance):
    """The largest relative difference of two outputs' numbers. Raises Failure where they are not the same text,
    other integers, or further apart than `tolerance`."""
    def lines(output):
        split = re.split(r"[\r\n]+", output.decode(errors="replace"))
        return [line for line in split if line.strip()]

    worst = 0.0
    expected, actual = lines(expected), lines(actual)
    for number, (a, b) in enumerate(zip(expected, actual), 1):
        where = f"line {number}\n  original: {a}\n  migrated: {b}"
        (text_a, numbers_a), (text_b, numbers_b) = pieces(a), pieces(b)
        if text_a != text_b:
            raise Failure(f"other text, {where}")
        for x, y in zip(numbers_a, numbers_b):
            integers = re.fullmatch(r"[-+]?\d+", x) and re.fullmatch(r"[-+]?\d+", y)
            difference = relative(float(x), float(y))
            worst = max(worst, difference)
            if integers and int(x) != int(y):
                raise Failure(f"{x} became {y}, {where}")
            if difference > tolerance and not abs(float(x) - float(y)) <= last_digit(x, y):
                raise Failure(f"{x} became {y} (relative difference {difference:.1e}), {where}", difference)
    if len(expected) != len(actual):
        raise Failure(f"{len(actual)} lines, the original has {len(expected)}\n  first: "
                      f"{(expected + actual)[min(len(expected), len(actual))] if expected else actual[0]}")
    return worst


def numbers_in(output):
    return [float(number) for number in NUMBER.findall(output.decode(errors="replace"))]


def load(path):
    import torch

    module = torch.jit.load(str(path), map_location="cpu")
    return dict(module.state_dict())


def compare_weights(expected, actual, tolerance):
    """The largest difference of a saved tensor, relative to the tensor's largest element; `tolerance` None asks for
    the same bits."""
    import torch

    expected, actual = load(expected), load(actual)
    if list(expected) != list(actual):
        raise Failure(f"saved tensors: {', '.join(actual)}; the original has {', '.join(expected)}")
    if not expected:
        raise Failure("no tensors were saved")
    worst = 0.0
    for name, a in expected.items():
        b = actual[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            raise Failure(f"{name}: {b.dtype}{list(b.shape)}, the original has {a.dtype}{list(a.shape)}")
        if a.numel() == 0:
            continue
        same = torch.equal(a.contiguous().reshape(-1).view(torch.uint8), b.contiguous().reshape(-1).view(torch.uint8))
        a, b = a.double(), b.double()
        scale = max(a.abs().max().item(), sys.float_info.min)
        difference = 0.0 if same else (a - b).abs().max().item() / scale
        worst = max(worst, difference)
        if not same and (tolerance is None or not difference <= tolerance):
            raise Failure(f"{name}: relative difference {difference:.1e}", difference)
    return worst


def line_ends(text):
    """Whether all lines end in CR LF, all in LF, or some in each."""
    both, all_ = text.count(b"\r\n"), text.count(b"\n")
    return "LF" if both == 0 else "CR LF" if both == all_ else "mixed"


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


# --- the steps ----------------------------------------------------------------------------------------------


class Program:
    """What examples.json tells of one program, and what its original did."""

    def __init__(self, name, expected, data):
        self.name = name
        self.verdict = expected.get("verdict", "migrated")
        self.findings = expected.get("findings", [])
        self.args = [word.replace("{data}", data) for word in expected.get("args", [])]
        self.runs = expected.get("runs", 1)
        self.outputs = expected.get("outputs", [])
        self.seeds = expected.get("seeds", [])
        self.args += [str(seed) for seed in self.seeds[:1]]
        self.migrates = self.verdict.startswith("migrated")
        self.printed = {}  # by run


class Comparison:
    def __init__(self, options, example):
        self.options = options
        self.name = options.example.name
        self.tolerance = options.tolerance or example.get("tolerance", 1e-4)
        self.cmake = example.get("cmake", [])
        data = options.data or os.environ.get("ACCELERATE_MIGRATE_DATA", "")
        self.programs = [Program(name, expected, data) for name, expected in example["programs"].items()]
        self.migrating = [program for program in self.programs if program.migrates]
        if options.args:
            self.programs[0].args = options.args
        self.work = options.work
        self.project = self.work / "project"
        self.env = dict(os.environ, OMP_NUM_THREADS="1", CCACHE_BASEDIR=str(self.work),
                        GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull)
        self.failed = False
        self.largest = 0.0

    def row(self, check, result, detail=""):
        print(f"{check:<34} {result:<6} {detail}".rstrip(), flush=True)

    def check(self, name, function):
        """Runs one check and prints its row; a failing one doesn't stop the others."""
        try:
            detail = function()
        except Failure as failure:
            self.failed = True
            self.largest = max(self.largest, failure.difference)
            first, _, rest = str(failure).partition("\n")
            self.row(name, "DIFFER", first)
            if rest:
                print("  " + rest.rstrip().replace("\n", "\n  "), flush=True)
            return False
        self.row(name, "ok", detail or "")
        return True

    def copy(self):
        for folder in (self.project, self.work / "runs", self.work / "original"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.options.example, self.project, ignore=shutil.ignore_patterns("build*", ".cache", "*.pt"))
        git = ["git", "-c", "user.name=compare", "-c", "user.email=compare@localhost"]
        must(["git", "init", "-q"], self.project, 60, self.env)
        (self.project / ".git/info/exclude").write_text("/build/\n")
        must(["git", "add", "-A"], self.project, 60, self.env)
        must([*git, "commit", "-q", "-m", "original"], self.project, 60, self.env)

    def configure(self, *more):
        return must(["cmake", "-S", self.project, "-B", self.project / "build", "-G", "Ninja",
                     "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
                     "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *self.cmake, *more],
                    self.work, self.options.build_timeout, self.env)

    def build(self):
        targets = [program.name for program in self.migrating]
        if not targets:
            return "no program that is run"
        done = must(["cmake", "--build", self.project / "build", "-j", "2", "--target", *targets], self.work,
                    self.options.build_timeout, self.env)
        warnings = len(re.findall(rb"warning:", done.out + done.err))
        return f"{done.seconds:.0f} s" + (f", {warnings} warnings" if warnings else "")

    def build_original(self):
        self.configure()
        built = self.build()
        (self.work / "original").mkdir()
        for program in self.migrating:
            shutil.copy2(self.project / "build" / program.name, self.work / "original")
        return built

    def migrate(self):
        done = execute([self.options.tool, "-p", self.project / "build"], self.project, self.options.timeout, self.env)
        (self.work / "migration.diff").write_bytes(done.out)
        (self.work / "migration.log").write_bytes(done.err)
        if done.code != 1:
            raise Failure(f"exit code {done.code}, expected 1 (edits or findings are pending)\n"
                          f"{tail(done.out)}{tail(done.err)}")
        if not self.migrating:
            if done.out:
                raise Failure(f"no program migrates, but there is a diff\n{tail(done.out)}")
            return f"no edits, in {done.seconds:.1f} s"
        for apply in (["--check"], []):
            must(["git", "apply", *apply, self.work / "migration.diff"], self.project, 60, self.env)
        if self.options.show_diff:
            print("\n" + done.out.decode(errors="replace"), flush=True)
        for path in self.changed():
            if line_ends((self.options.example / path).read_bytes()) != line_ends((self.project / path).read_bytes()):
                raise Failure(f"{path}: other line endings")
        stat = must(["git", "diff", "--shortstat"], self.project, 60, self.env).out.decode().strip()
        return f"{stat} in {done.seconds:.1f} s"

    def changed(self):
        return must(["git", "diff", "--name-only", "-z"], self.project, 60, self.env).out.decode().split("\0")[:-1]

    def verdicts(self):
        """Asks the tool once more, before the diff is applied, for what it tells programs by machine."""
        done = execute([self.options.tool, "-p", self.project / "build", "--format=json"], self.project,
                       self.options.timeout, self.env)
        self.document = json.loads(done.out)
        found = {program["name"]: program for program in self.document["programs"]}
        if sorted(found) != sorted(program.name for program in self.programs):
            raise Failure(f"programs: {', '.join(sorted(found))}; expected {', '.join(p.name for p in self.programs)}")
        for program in self.programs:
            program.units = found[program.name]["units"]
        return ", ".join(f"{self.count(verdict)} {verdict}" for verdict in sorted({p.verdict for p in self.programs}))

    def count(self, verdict):
        return sum(program.verdict == verdict for program in self.programs)

    def check_verdict(self, program):
        found = next(other for other in self.document["programs"] if other["name"] == program.name)
        if found["verdict"] != program.verdict:
            raise Failure(f"{found['verdict']}, expected {program.verdict}\n{found.get('reason', '')}")
        findings = sorted({f"{finding['code']} {finding['file']}" for finding in self.document["findings"]
                           if finding["file"] in program.units and finding["severity"] != "remark"})
        if findings != sorted(program.findings):
            raise Failure(f"findings: {', '.join(findings) or 'none'}; "
                          f"expected {', '.join(program.findings) or 'none'}")
        return program.verdict + (f" ({', '.join(findings)})" if findings else "")

    def check_left_alone(self):
        """Sources that belong to programs which weren't migrated, and to no other, are as they were."""
        migrated = {unit for program in self.migrating for unit in program.units}
        others = {unit for program in self.programs for unit in program.units} - migrated
        touched = sorted(others.intersection(self.changed()))
        if touched:
            raise Failure(f"changed, though their programs weren't migrated: {', '.join(touched)}")

    def build_migrated(self):
        runtime = self.options.runtime
        found = [path for pattern in ("AccelerateConfig.cmake", "accelerate-config.cmake")
                 for path in ([runtime / pattern] if (runtime / pattern).is_file() else sorted(runtime.rglob(pattern)))]
        more = [f"-DCMAKE_PREFIX_PATH={runtime}"]
        if found:
            more.append(f"-DAccelerate_DIR={found[0].parent}")
        self.configure(*more)
        return self.build()

    def migrate_again(self):
        refused = self.count("refused") > 0
        done = execute([self.options.tool, "-p", self.project / "build"], self.project, self.options.timeout, self.env)
        if done.code != refused or done.out.strip():
            raise Failure(f"exit code {done.code}, expected {int(refused)} and an empty diff\n"
                          f"{tail(done.out)}{tail(done.err)}")

    def run(self, program, name, launch=()):
        """Runs a program in a fresh folder, keeps what it printed, returns it and that folder."""
        cwd = self.work / "runs" / program.name / name
        cwd.mkdir(parents=True)
        total = Done(0, b"", b"", 0.0)
        for _ in range(program.runs):
            command = [*launch, self.project / "build" / program.name, *program.args]
            done = execute(command, cwd, self.options.timeout, self.env)
            total = Done(done.code, total.out + done.out, total.err + done.err, total.seconds + done.seconds)
            if done.code != 0:
                break
        program.printed[name] = total.out
        for kind, output in (("stdout", total.out), ("stderr", total.err)):
            (cwd.parent / f"{name}.{kind}").write_bytes(output)
        if total.code != 0:
            raise Failure(f"exit code {total.code}\n{tail(total.out)}{tail(total.err)}")
        missing = [output for output in program.outputs if not (cwd / output).is_file()]
        if missing:
            raise Failure(f"did not write {', '.join(missing)}")
        return total, cwd

    def run_original(self, program):
        program.reference, program.reference_cwd = self.run(program, "original")
        return f"{program.reference.seconds:.1f} s"

    def compare_run(self, program, name, ranks, tolerance):
        launch = [self.options.launcher, "launch", "-n", str(ranks), "--cpu", "--"] if ranks else []
        done, cwd = self.run(program, name, launch)
        if tolerance is None and done.out != program.reference.out:
            compare_text(program.reference.out, done.out, 0.0)
            raise Failure("stdout has other bytes")
        printed = compare_text(program.reference.out, done.out, tolerance or 0.0)
        saved = max((compare_weights(program.reference_cwd / output, cwd / output, tolerance)
                     for output in program.outputs), default=0.0)
        extra = [path for path in sorted(files(cwd) ^ files(program.reference_cwd))
                 if not any(fnmatch.fnmatch(part, log) for part in pathlib.Path(path).parts for log in RANK_LOGS)]
        if extra:
            raise Failure(f"other files than the original's: {', '.join(extra)}")
        self.largest = max(self.largest, printed, saved)
        if tolerance is None:
            return f"the same bits, {done.seconds:.1f} s"
        return f"largest relative difference: printed {printed:.1e}, saved {saved:.1e}; {done.seconds:.1f} s"

    def spread(self, program):
        """What the original prints with each seed."""
        program.spread = [numbers_in(program.reference.out)]
        for seed in program.seeds[1:]:
            program.args[-1] = str(seed)
            program.spread.append(numbers_in(self.run(program, f"seed-{seed}")[0].out))
        program.args[-1] = str(program.seeds[0])
        return "ends at " + ", ".join(f"{numbers[-1]:.6g}" for numbers in program.spread)

    def compare_spread(self, program, name, ranks):
        """One run on ranks against the spread of the original's."""
        done, _ = self.run(program, name, [self.options.launcher, "launch", "-n", str(ranks), "--cpu", "--"])
        numbers, furthest = numbers_in(done.out), 0.0
        if len(numbers) != len(program.spread[0]):
            raise Failure(f"{len(numbers)} numbers, the original prints {len(program.spread[0])}")
        for number, others in zip(numbers, zip(*program.spread)):
            mean, deviation = statistics.mean(others), statistics.stdev(others)
            away = 0.0 if number == mean else abs(number - mean) / max(deviation, sys.float_info.min)
            if not away <= 4:
                raise Failure(f"{number:.6g} is {away:.1f} deviations from the mean of {len(others)} seeds, {mean:.6g}")
            furthest = max(furthest, away)
        return f"at most {furthest:.1f} deviations from the mean of {len(program.seeds)} seeds"

    def print_losses(self, program, most=8):
        """The losses that the runs printed, side by side: `most` of them, evenly spread."""
        losses = {name: re.findall(r"loss\D*?(\d+\.\d+)", out.decode(errors="replace"), re.IGNORECASE)
                  for name, out in program.printed.items()}
        longest = max(map(len, losses.values()), default=0)
        picked = sorted({round(i * (longest - 1) / (most - 1)) for i in range(most)}) if longest else []
        print("\nloss no.  " + "".join(f"{name:>12}" for name in losses))
        for i in picked:
            row = [numbers[i] if i < len(numbers) else "-" for numbers in losses.values()]
            print(f"{i + 1:>8}  " + "".join(f"{number:>12}" for number in row))
        print()

    def label(self, program, text):
        return f"{program.name}: {text}" if len(self.programs) > 1 else text

    def compare(self, program):
        self.check(self.label(program, "migrated: alone"), lambda: self.compare_run(program, "alone", 0, None))
        if program.seeds:
            self.check(self.label(program, f"original: {len(program.seeds)} seeds"), lambda: self.spread(program))
        for ranks in self.options.ranks:
            if program.seeds and ranks > 1:
                self.check(self.label(program, f"migrated: {ranks} ranks"),
                           lambda: self.compare_spread(program, f"ranks-{ranks}", ranks))
                continue
            # One rank is alone, started by the launcher: the same bits as well.
            tolerance = None if ranks == 1 else self.tolerance
            self.check(self.label(program, f"migrated: {ranks} rank{'s' * (ranks > 1)}"),
                       lambda: self.compare_run(program, f"ranks-{ranks}", ranks, tolerance))
        if self.options.show_diff:
            self.print_losses(program)

    def main(self):
        self.copy()
        commands = [" ".join([program.name, *program.args]) for program in self.programs]
        print(f"{self.name}: {', '.join(commands)}", flush=True)
        if self.check("original: build", self.build_original) and self.check("verdicts", self.verdicts):
            for program in self.programs:
                self.check(self.label(program, "verdict"), lambda: self.check_verdict(program))
            ran = [program for program in self.migrating
                   if self.check(self.label(program, "original: run"), lambda: self.run_original(program))]
            migrated = self.check("migrate", self.migrate) and self.check("left alone", self.check_left_alone)
            if migrated and self.migrating and self.check("migrated: build", self.build_migrated):
                self.check("migrate again", self.migrate_again)
                for program in ran:
                    self.compare(program)
        print(f"largest relative difference: {self.largest:.1e} (tolerance {self.tolerance:.0e})")
        print("differ" if self.failed else "agree", flush=True)
        return 1 if self.failed else 0


def main():
    path = lambda text: pathlib.Path(text).resolve()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=path, required=True, help="accelerate-migrate")
    parser.add_argument("--launcher", type=path, required=True, help="accelerate-cpp")
    parser.add_argument("--runtime-prefix-or-build", dest="runtime", type=path, required=True,
                        help="where AccelerateConfig.cmake lies, at any depth")
    parser.add_argument("--example", type=path, required=True, help="a folder that examples.json describes")
    parser.add_argument("--work", type=path, required=True, help="scratch folder; what is in it is overwritten")
    parser.add_argument("--ranks", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--data", help="default: $ACCELERATE_MIGRATE_DATA")
    parser.add_argument("--show-diff", action="store_true", help="print the diff, and a table of the printed losses")
    parser.add_argument("--tolerance", type=float, help="default: the example's")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for each run")
    parser.add_argument("--build-timeout", type=float, default=900, help="seconds for each build")
    argv, args = sys.argv[1:], []
    if "--" in argv:
        argv, args = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    options = parser.parse_args(argv)
    options.args = args
    if min(options.ranks) < 1:
        parser.error("--ranks: numbers from 1")
    for program in (options.tool, options.launcher):
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is no program")
    examples = json.loads((HERE / "examples.json").read_text())
    if options.example.name not in examples:
        parser.error(f"{options.example.name} is not in examples.json, which has {', '.join(examples)}")
    options.work.mkdir(parents=True, exist_ok=True)
    try:
        return Comparison(options, examples[options.example.name]).main()
    except Failure as failure:
        print(f"{failure}\ndiffer")
        return 1


if __name__ == "__main__":
    sys.exit(main())
