"""Migrates, builds and runs units of generated cases, and compares what they print."""

import concurrent.futures
import dataclasses
import glob
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess

from program_expressions import JOINED
from program_text import unit

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b)")
# Findings that change nothing of what is computed.
BENIGN = {"evaluation-kept"}
# Values are printed in float64; what rounding may do in a few steps is far below, what is wrong is far above.
RELATIVE, ABSOLUTE = 1e-7, 2e-9


class Failure(Exception):
    """The machinery failed, not a program."""


@dataclasses.dataclass
class Done:
    code: int  # None: no end in time
    out: str
    err: str


def execute(command, cwd, timeout, env=None):
    """Runs a command in a session of its own; after the time limit nothing of it is left."""
    process = subprocess.Popen([str(c) for c in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    code = 0
    try:
        out, err = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        # The launcher ends its ranks when it's told to; then whatever is left.
        process.terminate()
        try:
            out, err = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        code = None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return Done(code, out.decode(errors="replace"), err.decode(errors="replace"))


@dataclasses.dataclass
class Verdict:
    """What the tool said to a program of one case."""

    verdict: str  # migrated, migrated with notes, refused, or what went wrong: crashed, invalid, unverified
    reason: str = ""
    announced: tuple = ()  # findings that allow other numbers

    @property
    def migrated(self):
        return self.verdict.startswith("migrated")

    @property
    def failed(self):
        return self.verdict in ("crashed", "unverified", "nothing to do")


def compare(expected, actual):
    """None, or the first difference of two outputs of a case."""
    expected, actual = expected.splitlines(), actual.splitlines()
    for a, b in zip(expected, actual):
        if a == b:
            continue
        if NUMBER.split(a) != NUMBER.split(b):
            return f"original: {a}\nmigrated: {b}"
        for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)):
            if x == y:
                continue
            whole = re.fullmatch(r"[-+]?\d+", x) and re.fullmatch(r"[-+]?\d+", y)
            v, w = float(x), float(y)
            # What a division by zero comes to depends on the order of a sum: the sign of a NaN, or a NaN for an infinity
            # whose parts have both signs.
            if not math.isfinite(v) and not math.isfinite(w):
                continue
            # `not <=` holds for a NaN, too.
            if whole or not abs(v - w) <= RELATIVE * max(abs(v), abs(w)) + ABSOLUTE:
                return f"original: {a}\nmigrated: {b}"
    if len(expected) != len(actual):
        more, who = (expected, "original") if len(expected) > len(actual) else (actual, "migrated")
        return f"only the {who}: {more[min(len(expected), len(actual))]}"
    return None


def blocks(output):
    """What each case printed, by its number."""
    pieces = re.split(r"^== case (\d+)\n", output, flags=re.MULTILINE)
    return {int(number): text for number, text in zip(pieces[1::2], pieces[2::2])}


class Bench:
    """The tools, the compiler with its precompiled headers, and a folder to work in."""

    def __init__(self, options):
        self.tool, self.launcher, self.work = options.tool, options.launcher, options.work
        self.jobs, self.compiler = options.jobs, options.compiler
        self.runtime_include, self.runtime_library = options.runtime_include, options.runtime_library
        torch = options.torch or next(iter(glob.glob(
            os.environ.get("ACCELERATE_MIGRATE_VENV", "") + "/lib/python3*/site-packages/torch")), None)
        if not torch or not os.path.isdir(torch):
            raise Failure("LibTorch isn't found: run `scripts/setup` and `. scripts/env.sh`, or name its folder with --torch")
        self.torch = pathlib.Path(torch)
        self.includes = ["-isystem", str(self.torch / "include"),
                         "-isystem", str(self.torch / "include/torch/csrc/api/include"), "-std=c++17"]
        self.env = dict(os.environ, OMP_NUM_THREADS="1", GIT_CEILING_DIRECTORIES=str(self.work.parent))
        self.units = 0

    # --- the tool

    def judge(self, case):
        """The tool's verdict on a program of this case alone."""
        folder = self.work / "alone" / case.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "main.cpp").write_text(unit([case]))
        done = execute([self.tool, "--format=json", "--no-cache", f"--runtime-include={self.runtime_include}", "main.cpp",
                        "--", *self.includes], folder, 300, self.env)
        if done.code is None or done.code < 0 or done.code > 4 or done.code == 2:
            return Verdict("crashed", f"exit status {done.code}\n{done.err[-2000:]}")
        if done.code == 3:
            errors = [line for line in done.err.splitlines() if "error" in line]
            return Verdict("invalid", "\n".join(errors or done.err.splitlines()[-20:]))
        if done.code == 4:
            return Verdict("unverified", done.err[-3000:])
        document = json.loads(done.out)
        program = document["programs"][0] if document["programs"] else {"verdict": "nothing to do"}
        # A remark changes no verdict, and excuses nothing but what it is made for.
        joins = any(form in case.text() for forms in JOINED.values() for form in forms)
        announced = tuple(sorted({f["name"] for f in document["findings"] if f["severity"] != "remark" or joins} - BENIGN))
        reason = program.get("reason", "")
        if program["verdict"] == "refused":
            messages = [f["message"] for f in document["findings"] if f["severity"] == "refusal"]
            reason += ": " + (messages[0] if messages else "")
        return Verdict(program["verdict"], reason, announced)

    def judge_all(self, cases):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return dict(zip([case.number for case in cases], pool.map(self.judge, cases)))

    # --- the compiler

    def header(self, name, includes):
        folder = self.work / "headers"
        folder.mkdir(parents=True, exist_ok=True)
        header, pch = folder / f"{name}.h", folder / f"{name}.h.pch"
        if not pch.exists():
            header.write_text("".join(f"#include <{i}>\n" for i in includes))
            done = execute([self.compiler, *self.flags(), "-x", "c++-header", "-fpch-instantiate-templates", header, "-o",
                            str(pch) + ".new"], folder, 900, self.env)
            if done.code != 0:
                raise Failure(f"{header} doesn't compile:\n{done.err[-3000:]}")
            os.rename(str(pch) + ".new", pch)
        return pch

    def flags(self):
        return [*self.includes, f"-I{self.runtime_include}", "-O0", "-w"]

    def build(self, folder, headers, libraries):
        """Compiles folder/main.cpp; None, or the compiler's errors."""
        pch = self.header(*headers)
        done = execute([self.compiler, *self.flags(), "-include-pch", pch, "-c", "main.cpp", "-o", "main.o"], folder, 900,
                       self.env)
        if done.code == 0:
            lib = self.torch / "lib"
            done = execute([self.compiler, "main.o", "-o", "main", f"-L{lib}", f"-Wl,-rpath,{lib}", *libraries, "-ltorch",
                            "-ltorch_cpu", "-lc10"], folder, 600, self.env)
        return None if done.code == 0 else done.err

    # --- runs

    def run(self, folder, name, cases, launch=()):
        """What each case printed, or how it ended: {number: (text, problem)}. One that crashes or hangs doesn't keep the
        others from running."""
        results, left, attempt = {}, [case.number for case in cases], 0
        while left:
            cwd = folder / f"{name}-{attempt}"
            attempt += 1
            cwd.mkdir()
            done = execute([*launch, folder / "main", *left], cwd, 60 + 3 * len(left), self.env)
            printed = blocks(done.out)
            if done.code == 0:
                for number in left:
                    results[number] = (printed.get(number, ""), None)
                return results
            begun = [number for number in left if number in printed] or left[:1]
            for number in begun[:-1]:
                results[number] = (printed[number], None)
            problem = "no end in time" if done.code is None else f"exit status {done.code}"
            said = [line for line in done.err.splitlines() if not re.match(r"\s*frame #", line)]
            results[begun[-1]] = (printed.get(begun[-1], ""), "\n".join([problem, *said[:12]])[:2000])
            left = left[left.index(begun[-1]) + 1:]
        return results

    def check(self, cases, verdicts):
        """Migrates the cases as one program, builds and runs it: {number: what is wrong}, and notes to print."""
        self.units += 1
        folder = self.work / f"unit-{self.units}"
        shutil.rmtree(folder, ignore_errors=True)
        wrong, notes = {}, []
        while cases:
            original, migrated = folder / "original", folder / "migrated"
            for where in (original, migrated):
                where.mkdir(parents=True, exist_ok=True)
                (where / "main.cpp").write_text(unit(cases))
            done = execute([self.tool, "--in-place", "--allow-dirty", "--format=json", "--no-cache", f"--runtime-include={self.runtime_include}",
                            "main.cpp", "--", *self.includes], migrated, 900, self.env)
            if done.code not in (0, 1) or not re.search(r'"verdict": ?"migrated', done.out):
                if len(cases) > 1:
                    half = len(cases) // 2
                    notes.append(f"{len(cases)} cases, each migrated alone, aren't together (exit status {done.code}): "
                                 f"{folder}/migrated\n{done.err[-600:]}")
                    for part in (cases[:half], cases[half:]):
                        more, said = self.check(part, verdicts)
                        wrong.update(more)
                        notes += said
                    return wrong, notes
                wrong[cases[0].number] = f"migrated with --format=json, not in place (exit status {done.code})\n{done.err}"
                return wrong, notes
            errors = self.build(original, ("original", ["torch/torch.h"]), [])
            if errors:
                raise Failure(f"a generated program doesn't compile: {original}/main.cpp\n{errors[-3000:]}")
            errors = self.build(migrated, ("migrated", ["torch/torch.h", "accelerate/accelerate.h"]),
                                [f"-L{self.runtime_library}", f"-Wl,-rpath,{self.runtime_library}", "-laccelerate"])
            if not errors:
                break
            broken = self.cases_of(errors, migrated / "main.cpp", cases)
            for case in broken:
                said = [line for line in errors.splitlines() if re.search(r"error:|^main\.cpp:\d+", line)]
                wrong[case.number] = "\n".join(["the migrated program doesn't build", *said[:6]])[:2000]
            cases = [case for case in cases if case not in broken]
            shutil.rmtree(folder)
        if not cases:
            return wrong, notes
        reference = self.run(original, "run", cases)
        cases = [case for case in cases if reference[case.number][1] is None or
                 notes.append(f"case {case.number}: the original fails: {reference[case.number][1]}")]
        for ranks in (0, 2, 3):
            launch = [self.launcher, "launch", "-n", ranks, "--cpu", "--"] if ranks else []
            left = [case for case in cases if case.number not in wrong]
            for number, (text, problem) in self.run(migrated, f"ranks-{ranks}", left, launch).items():
                where = f"on {ranks} ranks" if ranks else "alone"
                expected = reference[number][0]
                if problem:
                    wrong[number] = f"{where}: {problem}"
                elif not ranks and text != expected:
                    wrong[number] = f"{where}: other bits\n{compare(expected, text) or 'in the last digits'}"
                elif ranks and not verdicts[number].announced and (difference := compare(expected, text)):
                    wrong[number] = f"{where}:\n{difference}"
        if not wrong and not notes:
            shutil.rmtree(folder)
        return wrong, notes

    @staticmethod
    def cases_of(errors, source, cases):
        """The cases in whose lines the compiler's errors stand."""
        owner, owners = None, []
        for line in source.read_text().split("\n"):
            if match := re.match(r"namespace case_(\d+) ", line):
                owner = int(match.group(1))
            owners.append(owner)
        lines = [int(n) for n in re.findall(r"^main\.cpp:(\d+):\d+: (?:fatal )?error", errors, re.MULTILINE)]
        lines += [int(n) for n in re.findall(r"^main\.cpp:(\d+):\d+: note: in instantiation", errors, re.MULTILINE)]
        numbers = {owners[line - 1] for line in lines if line <= len(owners)}
        found = [case for case in cases if case.number in numbers]
        if not found:
            raise Failure(f"the migrated program {source} doesn't build, and no case is to blame:\n{errors[-3000:]}")
        return found
