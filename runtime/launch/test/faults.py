"""What happens to a job when something happens to one of its ranks: a matrix.

Usage: faults.py LAUNCHER PROGRAM [--all] [--jobs N] [--where PLACE,...] [--what FAULT,...] [--verbose]

Each case launches PROGRAM (faulty_training.cpp) on two or three ranks and lets a fault (killed, stopped, an exception,
exit(0), a tensor of another shape) happen on one of them, first, last or between others, at a place. The job must end
within the timeout and ten seconds, not with 0, and name the rank; no process may be left; and started again it must go on
from the last checkpoint and end with bit for bit the weights of a job to which nothing happened. In the cases called
restart the launcher itself starts it again. Prints a table and `N passed, N failed`; exit status 0 if none failed.

Without --all, each fault at each place is tried once, on ranks that change from case to case, and ranks 1 and 2 of three
are killed everywhere.
"""

import argparse
import concurrent.futures
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid

PLACES = ["start", "forward", "backward", "metric", "save", "end", "exit"]
FAULTS = ["kill", "stop", "throw", "exit", "mismatch"]
VICTIMS = [(2, 1), (3, 2), (2, 0), (3, 0), (3, 1)]  # ranks of the job, and the one that it happens to
KILLED = [(3, 1), (3, 2)]  # at every place: a rank between others, and the last one
TIMEOUT = 10  # the ranks', in seconds; they start in half a second, but not on a machine that is busy
MARGIN = 10
PATIENCE = 150  # with a job that should have ended

# How the message names the rank. {0} is its number.
NAMED = {
    "kill": r"\[accelerate-cpp\] rank {0} was killed by signal 9",
    "stop": r"\[accelerate-cpp\] rank {0} is stopped by signal 19|No sign of life from rank {0} |haven't started: {0}\b",
    "throw": r"\[accelerate-cpp\] rank {0} was killed by signal 6[^\0]*?    the injected fault\n|failed on rank {0}: the injected",
    "exit": r"\[accelerate-cpp\] rank {0} had ended before, with code 0|ha(d|s) ended (already )?on rank {0} ",
    "mismatch": r"(?i)\brank {0}\b",
}


def cases(all_of_them):
    """(place, fault, ranks, victim), without those that are no fault: behind the last collective every rank may exit."""
    for (p, place), (f, fault) in itertools.product(enumerate(PLACES), enumerate(FAULTS)):
        if place == "exit" and fault in ("exit", "mismatch"):
            continue
        one = VICTIMS[(p + f) % len(VICTIMS)]
        chosen = VICTIMS if all_of_them else [one, *(KILLED if fault == "kill" else [])]
        for ranks, victim in dict.fromkeys(chosen):
            yield place, fault, ranks, victim
    yield "backward", "restart", 2, 1
    yield "save", "restart", 3, 0


def processes_of(mark):
    """Those that were started with this variable and still run."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                marked = mark.encode() in file.read()
            with open(f"/proc/{process}/stat") as file:
                running = file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            continue
        if marked and running:
            found.append(process)
    return found


class Case:
    def __init__(self, options, place="", fault="", ranks=2, victim=0):
        self.options, self.place, self.fault, self.ranks, self.victim = options, place, fault, ranks, victim
        self.folder = tempfile.mkdtemp(prefix="faults-")
        self.mark = f"FAULTS_PY_CASE={uuid.uuid4()}"
        self.output = ""
        self.seconds = 0.0

    def launch(self, *fault, flags=(), timeout=60):
        """Runs the job to its end. Returns its exit code, or raises AssertionError."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("ACCELERATE_", "TORCHELASTIC_"))
        }
        name, value = self.mark.split("=")
        environment.update({name: value, "OMP_NUM_THREADS": "1", "HOME": self.folder, "TMPDIR": self.folder})
        command = [self.options.launcher, "launch", "--cpu", "-n", str(self.ranks), "--timeout", str(timeout)]
        command += [*flags, "--", self.options.program, self.folder, *fault]
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace",
        )
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            self.output += output
            raise AssertionError("the job doesn't end") from None
        self.output += f"$ {' '.join(command)}\n{output}[exit code {process.returncode}]\n"
        return process.returncode

    def weights(self):
        with open(os.path.join(self.folder, "final", "model.safetensors"), "rb") as file:
            return file.read()

    def run(self, expected):
        """What is wrong; empty if all is well."""
        try:
            if self.fault == "restart":
                self.run_with_restart()
            else:
                self.run_with_fault()
            left = processes_of(self.mark)
            assert not left, f"processes {', '.join(left)} are left"
            if self.fault != "restart":
                assert self.launch() == 0, "it doesn't go on"
            assert self.weights() == expected, "the weights are others"
            return ""
        except (AssertionError, OSError) as error:
            return str(error)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def run_with_fault(self):
        code = self.launch(self.place, self.fault, str(self.victim), timeout=TIMEOUT)
        end = time.time()
        assert os.path.exists(os.path.join(self.folder, "fault")), "the fault didn't happen"
        self.seconds = end - os.path.getmtime(os.path.join(self.folder, "fault"))
        assert code != 0, "it ended with 0"
        assert self.seconds < TIMEOUT + MARGIN, f"it ended after {self.seconds:.1f} s"
        assert re.search(NAMED[self.fault].format(self.victim), self.output), "the rank isn't named"

    def run_with_restart(self):
        code = self.launch(self.place, "kill", str(self.victim), flags=["--max_restarts", "1"])
        assert code == 0, f"it ended with {code}"
        assert f"rank {self.victim} was killed by signal 9" in self.output, "the rank isn't named"
        assert "restart 1 of 1" in self.output, "the launcher didn't restart it"


def expected_weights(options):
    """By the number of ranks, of jobs to which nothing happens."""
    weights = {}
    for ranks in sorted({ranks for ranks, _ in VICTIMS}):
        case = Case(options, ranks=ranks)
        if case.launch() != 0:
            print(case.output)
            sys.exit("faults.py: the program fails by itself")
        weights[ranks] = case.weights()
        shutil.rmtree(case.folder)
    return weights


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launcher")
    parser.add_argument("program")
    parser.add_argument("--all", action="store_true", help="every fault at every place on every of the ranks")
    parser.add_argument("--jobs", type=int, default=3, help="cases at once (default: 3)")
    parser.add_argument("--where", default="", help="only these places")
    parser.add_argument("--what", default="", help="only these faults")
    parser.add_argument("--verbose", action="store_true", help="print what the jobs printed")
    options = parser.parse_args()
    options.launcher, options.program = map(os.path.abspath, (options.launcher, options.program))

    expected = expected_weights(options)
    chosen = [
        Case(options, *case)
        for case in cases(options.all)
        if case[0] in (options.where.split(",") if options.where else PLACES)
        and case[1] in (options.what.split(",") if options.what else [*FAULTS, "restart"])
    ]
    failed = 0
    print(f"{'where':10}{'what':10}{'ranks':>6}{'rank':>6}{'seconds':>9}  result", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda case: case.run(expected[case.ranks]), chosen)
        for case, wrong in zip(chosen, results):
            failed += bool(wrong)
            seconds = f"{case.seconds:.1f}" if case.seconds else "-"
            print(f"{case.place:10}{case.fault:10}{case.ranks:6}{case.victim:6}{seconds:>9}  {wrong or 'passed'}", flush=True)
            if wrong or options.verbose:
                print(case.output)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
