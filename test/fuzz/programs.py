#!/usr/bin/env python3
"""Generates training programs, migrates them, and tells whether they still compute the same.

  scripts/fuzz programs [--count N] [--seed S] [--jobs J]

A case is a random training function. The tool judges each alone; those that it migrates are joined in units, which are
built as they are and migrated, and run alone (the same bits), on two and on three ranks (the same numbers but for
rounding; where a finding says that numbers change, only the end is asked for). What disagrees without a finding, hangs,
crashes or doesn't build is written to --failures, the first three reduced. The same seed gives the same cases.
Prints `N programs, M migrated, K refused, D disagree`; exit status 1 if any disagrees, 2 for wrong usage.
"""

import argparse
import collections
import pathlib
import random
import re
import shutil
import sys
import tempfile

import program_kinds
from program_reduce import reduced
from program_runs import Bench, Failure
from program_text import unit

ROOT = pathlib.Path(__file__).resolve().parents[2]
REDUCED = 3  # cases of a run: each takes a few builds, and many have one cause


class Fuzzer:
    def __init__(self, options, bench):
        self.options, self.bench = options, bench
        self.counts = collections.Counter()
        self.reasons = collections.Counter()
        self.disagree = []

    def report(self, case, what, migrated):
        """Writes a failing case, as it is and reduced."""
        print(f"case {case.number} (--seed {self.options.seed} --case {case.number}): {what}", flush=True)
        self.disagree.append(case.number)
        folder = self.options.failures / f"{self.options.seed}-{case.number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "main.cpp").write_text(unit([case]))
        (folder / "what.txt").write_text(what + "\n")
        if migrated and self.options.reduce and len(self.disagree) <= REDUCED:
            small = reduced(self.bench, case)
            (folder / "reduced.cpp").write_text(unit([small]))
            print(small.text(), flush=True)

    def batch(self, numbers):
        cases = [program_kinds.generate(self.options.seed, number) for number in numbers]
        verdicts = self.bench.judge_all(cases)
        migrated, invalid = [], []
        for case in cases:
            verdict = verdicts[case.number]
            self.counts["programs"] += 1
            if verdict.migrated:
                self.counts["migrated"] += 1
                self.counts["announced"] += bool(verdict.announced)
                migrated.append(case)
            elif verdict.verdict == "refused":
                self.counts["refused"] += 1
                self.reasons[re.sub(r" at \S+", "", verdict.reason)] += 1
            elif verdict.failed:
                self.report(case, f"{verdict.verdict}: {verdict.reason}", False)
            else:
                invalid.append(f"case {case.number} isn't C++ (--seed {self.options.seed}):\n{verdict.reason}")
        if invalid:
            raise Failure("\n".join(invalid))
        wrong, notes = self.bench.check(migrated, verdicts)
        for note in notes:
            print(note, flush=True)
        for case in migrated:
            if case.number in wrong:
                self.report(case, wrong[case.number], True)

    def all(self):
        if self.options.case is not None:
            self.batch([self.options.case])
            return
        for start in range(0, self.options.count, self.options.unit):
            self.batch(range(start, min(start + self.options.unit, self.options.count)))
            print(self.summary(), flush=True)

    def summary(self):
        c = self.counts
        return (f"{c['programs']} programs, {c['migrated']} migrated, {c['refused']} refused, "
                f"{len(self.disagree)} disagree")


def main():
    path = lambda text: pathlib.Path(text).resolve()
    release = ROOT / "build/release"
    parser = argparse.ArgumentParser(prog="fuzz programs", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40, help="how many cases (default: 40)")
    parser.add_argument("--seed", help="default: a new one, which is printed")
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--jobs", type=int, default=2, help="how many cases the tool reads at once (default: 2)")
    parser.add_argument("--unit", type=int, default=40, help="how many cases make a program (default: 40)")
    parser.add_argument("--print", action="store_true", help="print the cases' program and do nothing else")
    parser.add_argument("--no-reduce", dest="reduce", action="store_false", help="keep failing cases as they are")
    parser.add_argument("--failures", type=path, default=path("fuzz-failures"),
                        help="folder for what fails (default: fuzz-failures)")
    parser.add_argument("--work", type=path, help="folder for builds; kept (default: a temporary one)")
    parser.add_argument("--tool", type=path, default=release / "bin/accelerate-migrate")
    parser.add_argument("--launcher", type=path, default=release / "bin/accelerate-cpp")
    parser.add_argument("--runtime-include", type=path, default=ROOT / "runtime/include")
    parser.add_argument("--runtime-library", type=path, default=release / "lib", help="folder of libaccelerate.so")
    parser.add_argument("--torch", type=path, help="LibTorch's folder (default: that of scripts/setup)")
    parser.add_argument("--compiler", default="clang++-19")
    options = parser.parse_args()
    options.seed = options.seed or str(random.randrange(10**9))
    if options.print:
        numbers = [options.case] if options.case is not None else range(options.count)
        print(unit([program_kinds.generate(options.seed, number) for number in numbers]), end="")
        return 0
    for name in ("tool", "launcher"):
        if not getattr(options, name).is_file():
            parser.error(f"there is no '{getattr(options, name)}': build it (scripts/build), or name it with --{name}")
    if not shutil.which(options.compiler):
        parser.error(f"there is no compiler '{options.compiler}'")
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-programs-") as temporary:
        options.work = options.work or path(temporary)
        try:
            fuzzer = Fuzzer(options, Bench(options))
            fuzzer.all()
        except (Failure, OSError) as failure:
            print(f"fuzz: {failure}", file=sys.stderr)
            return 2
    for reason, count in fuzzer.reasons.most_common():
        print(f"{count:5} refused: {reason}")
    print(f"{fuzzer.counts['announced']} migrated with findings that allow other numbers")
    print(fuzzer.summary())
    return 1 if fuzzer.disagree else 0


if __name__ == "__main__":
    sys.exit(main())
