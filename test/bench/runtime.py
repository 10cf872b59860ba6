#!/usr/bin/env python3
"""What training with the runtime costs, beside plain LibTorch, hand-written loops, Python's DDP and Python's Accelerate.

  scripts/bench runtime [--rounds N] [--starts N] [--models A,B] [--variants A,B] [--build FOLDER]
                        [--no-training] [--no-loaders] [--no-compiler]

One run starts all variants of a model, and lets them train in turn, a block of steps each, round after round, so that
whatever else the machine does hits all alike; and starts them anew now and then, since processes differ in how their
memory comes to lie. glibc is told to keep freed memory: whether it gives some back in every step, and has it zeroed by
the kernel in the next, depends on what happens to lie behind, and came to 15 % between programs with the same steps.
Same model, global batch, data and optimizer, one thread a process, Gloo over the loopback; the loaders are what a user of
each would take.

  local            the plain program, one process                    C++, no runtime
  alone            the same program migrated, without a launcher     ours
  Python local     the plain program in Python
  ours             the migrated program, 2 ranks                     ours
  Reducer by hand  2 ranks, a loop written on c10d::Reducer          C++, no runtime
  per parameter    2 ranks, an all-reduce a parameter after backward C++, no runtime
  Python DDP       2 ranks
  Python Accelerate 2 ranks

A step's cost is CPU time of a process (its threads included; mean over ranks) and time on the clock (the slower rank).
Given are medians over rounds, and medians of the rounds' own ratios: the speed of one variant to another's, where more
than 1 is faster; behind ± is half the distance of the ratios' quartiles. Then: what a loader costs a batch beside torch's
own, and what the compiler takes for <accelerate/accelerate.h> behind <torch/torch.h>.

A slow machine is no failure, and neither is a goal missed; the exit status is 1 if a run itself goes wrong: a process that
fails, `local` and `alone` that don't end in the same bits, or ranks of a variant that don't.
"""

import argparse
import importlib.util
import os
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MODELS = ["mlp-small", "mlp-deep", "cnn", "mlp-5m", "transformer"]
BLOCK_SECONDS = 0.1  # of training, before another variant's turn
TIMEOUT = 120  # seconds for a start or a block

# name: its language, its program's name for it, its ranks
VARIANTS = {
    "local": ("C++", "local", 1),
    "alone": ("C++", "accelerate", 1),
    "Python local": ("Python", "local", 1),
    "ours": ("C++", "accelerate", 2),
    "Reducer by hand": ("C++", "reducer", 2),
    "per parameter": ("C++", "per-parameter", 2),
    "Python DDP": ("Python", "ddp", 2),
    "Python Accelerate": ("Python", "accelerate", 2),
}
# of one variant to another's: the speed that it must reach; for some models
GOALS = [
    ("alone", "local", 0.99, MODELS),
    ("ours", "Reducer by hand", 0.98, MODELS),
    ("ours", "per parameter", 2, ["mlp-deep"]),
    ("ours", "Python DDP", None, MODELS),
    ("ours", "Python Accelerate", 1, MODELS),
]
GOAL_HEADERS = 0.4  # seconds: "a few tenths"


class Wrong(Exception):
    pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Costs:
    """Of a variant: seconds a step, in each round."""

    def __init__(self):
        self.cpu, self.wall = [], []


class Processes:
    """A variant's processes, each of which trains when it's told to."""

    def __init__(self, name, command, ranks, log):
        self.name, self.log = name, log
        self.processes = []
        env = {k: v for k, v in os.environ.items() if not k.startswith("ACCELERATE_") or k.startswith("ACCELERATE_MIGRATE")}
        env["OMP_NUM_THREADS"] = env["MKL_NUM_THREADS"] = "1"
        env["MALLOC_TRIM_THRESHOLD_"] = env["MALLOC_MMAP_THRESHOLD_"] = str(2**32)
        if ranks > 1:
            env.update(
                WORLD_SIZE=str(ranks),
                LOCAL_WORLD_SIZE=str(ranks),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(free_port()),
                GLOO_SOCKET_IFNAME="lo",
                ACCELERATE_STDOUT="all",
            )
        for rank in range(ranks):
            if ranks > 1:
                env.update(RANK=str(rank), LOCAL_RANK=str(rank))
            self.processes.append(
                subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
            )

    def line(self, process):
        if not select.select([process.stdout], [], [], TIMEOUT)[0]:
            raise Wrong("%s: no answer for %d s" % (self.name, TIMEOUT))
        line = process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise Wrong("%s: a process ended:\n%s" % (self.name, self.log.read()[-2000:]))
        return line

    def wait_ready(self):
        for process in self.processes:
            while self.line(process).strip() != "ready":
                pass

    def train(self, steps):
        """CPU and clock seconds a step; loss and checksum of each rank."""
        for process in self.processes:
            process.stdin.write("%d\n" % steps)
            process.stdin.flush()
        answers = [self.line(p).split() for p in self.processes]
        sums = [float(a[3]) for a in answers]
        if any(s != sums[0] for s in sums):
            raise Wrong("%s: the ranks' parameters differ: %s" % (self.name, sums))
        cpu = statistics.mean(int(a[0]) for a in answers) / steps / 1e9
        wall = max(int(a[1]) for a in answers) / steps / 1e9
        return cpu, wall, (answers[0][2], answers[0][3])

    def end(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            try:
                status = process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                raise Wrong("%s: a process doesn't end" % self.name) from None
            if status != 0:
                self.log.seek(0)
                raise Wrong("%s: exit status %d\n%s" % (self.name, status, self.log.read()[-2000:]))

    def kill(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def quartiles(values):
    if len(values) < 4:
        return 0
    q = statistics.quantiles(values, n=4)
    return (q[2] - q[0]) / 2


def ratio(costs, other):
    """The speed of one to another's, and its spread."""
    ratios = [b / a for a, b in zip(costs, other)]
    return statistics.median(ratios), quartiles(ratios)


class Bench:
    def __init__(self, arguments, base):
        self.a, self.base = arguments, base
        self.program = os.path.join(self.a.build, "bin", "accelerate_training_bench")

    def command(self, variant, model):
        language, name, _ = VARIANTS[variant]
        if language == "C++":
            return [self.program, name, model]
        return [sys.executable, os.path.join(HERE, "python_training.py"), name, model]

    def interleave(self, model, names, rounds):
        """Rounds of all variants in turn; their costs."""
        costs = {name: Costs() for name in names}
        for _ in range(self.a.starts):
            self.one_start(model, costs, -(-rounds // self.a.starts))
        return costs

    def one_start(self, model, costs, rounds):
        names, started = list(costs), []
        try:
            for name in names:
                log = tempfile.TemporaryFile("w+", dir=self.base)
                started.append(Processes(name, self.command(name, model), VARIANTS[name][2], log))
                started[-1].wait_ready()
            steps = {}
            for p in started:
                p.train(20)  # buckets are rebuilt, memory is allocated
                cost = min(p.train(10)[1] for _ in range(2))
                steps[p.name] = max(8, round(BLOCK_SECONDS / cost))
            if "local" in steps and "alone" in steps:  # which must come to the same
                steps["alone"] = steps["local"]
            ends = {}
            for i in range(rounds):
                # There and back, from another one each time: none always follows the same.
                turn = started[i // 2 % len(started) :] + started[: i // 2 % len(started)]
                for p in turn if i % 2 == 0 else reversed(turn):
                    cpu, wall, ends[p.name] = p.train(steps[p.name])
                    costs[p.name].cpu.append(cpu)
                    costs[p.name].wall.append(wall)
                if "local" in ends and "alone" in ends and ends["local"] != ends["alone"]:
                    raise Wrong("%s: local ends with %s, alone with %s" % (model, ends["local"], ends["alone"]))
            for p in started:
                p.end()
        finally:
            for p in started:
                p.kill()

    def model(self, model):
        costs = self.interleave(model, self.a.variants, self.a.rounds)
        print("\n%s" % model)
        print("  %-20s %5s %12s %12s" % ("", "ranks", "CPU ms/step", "wall ms/step"))
        for name, p in costs.items():
            print(
                "  %-20s %5d %12.3f %12.3f"
                % (name, VARIANTS[name][2], 1e3 * statistics.median(p.cpu), 1e3 * statistics.median(p.wall))
            )
        print("  %-38s %-16s %-16s %s" % ("speed", "by CPU", "by the clock", "goal"))
        for one, other, wanted, models in GOALS:
            if one not in costs or other not in costs:
                continue
            if model not in models:
                wanted = None
            row = []
            for kind in ("cpu", "wall"):
                value, spread = ratio(getattr(costs[one], kind), getattr(costs[other], kind))
                row.append("%.3f ±%.3f" % (value, spread))
                if kind == "cpu":
                    verdict = "" if wanted is None else ">= %g: %s" % (wanted, "met" if value >= wanted else "missed")
            print("  %-38s %-16s %-16s %s" % (one + " : " + other, *row, verdict), flush=True)

    def loaders(self):
        print("\nloaders, a batch that costs nothing to make (CPU us a batch)")
        for model in ("loader", "loader-2-workers"):
            costs = self.interleave(model, ["local", "alone"], self.a.rounds)
            local, alone = (1e6 * statistics.median(costs[n].cpu) for n in ("local", "alone"))
            print("  %-20s torch's %.2f, ours %.2f, more %.2f" % (model, local, alone, alone - local), flush=True)

    # What the compiler takes.

    def compiler(self):
        cache = {}
        with open(os.path.join(self.a.build, "CMakeCache.txt"), encoding="utf-8") as f:
            for line in f:
                key, _, value = line.strip().partition("=")
                cache[key.partition(":")[0]] = value
        torch = os.path.dirname(importlib.util.find_spec("torch").origin)

        flags = ["-std=c++17", "-O2", "-c", "-o", os.path.join(self.base, "unit.o")]
        for folder in ("include", "include/torch/csrc/api/include"):
            flags += ["-isystem", os.path.join(torch, folder)]
        flags += ["-I", os.path.join(ROOT, "runtime", "include")]

        def seconds(text, header):
            path = os.path.join(self.base, "unit.cpp")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            begin = time.monotonic()
            process = subprocess.Popen([cache["CMAKE_CXX_COMPILER"], *flags, "-include", header, path])
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                raise Wrong("the compiler fails on: %s" % text)
            return usage.ru_utime + usage.ru_stime, time.monotonic() - begin

        # <torch/torch.h> is precompiled: what follows it is small beside it, and would drown in its noise.
        header = os.path.join(self.base, "torch.h")
        with open(header, "w", encoding="utf-8") as f:
            f.write("#include <torch/torch.h>\n")
        ahead = seconds("int main() {}\n", header)
        precompile = [f for f in flags if f not in ("-c", "-o", os.path.join(self.base, "unit.o"))]
        subprocess.run(
            [cache["CMAKE_CXX_COMPILER"], *precompile, "-x", "c++-header", header, "-o", header + ".gch"], check=True
        )
        without, with_ours = [], []
        for _ in range(self.a.rounds):
            without.append(seconds("int main() {}\n", header)[0])
            with_ours.append(seconds("#include <accelerate/accelerate.h>\nint main() {}\n", header)[0])
        more = statistics.median(b - a for a, b in zip(without, with_ours))
        print(
            "\n<accelerate/accelerate.h> behind <torch/torch.h> (%.1f s): %.2f s more; goal <= %g: %s"
            % (ahead[0], more, GOAL_HEADERS, "met" if more <= GOAL_HEADERS else "missed"),
            flush=True,
        )

    def all(self):
        subprocess.run(["cmake", "--build", self.a.build, "--target", "accelerate_training_bench"], check=True)
        if not self.a.no_training:
            for model in self.a.models:
                self.model(model)
        if not self.a.no_loaders:
            self.loaders()
        if not self.a.no_compiler:
            self.compiler()


def main():
    p = argparse.ArgumentParser(
        prog="scripts/bench runtime", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="the build (default: build/release)")
    p.add_argument("--rounds", type=int, default=40, metavar="N", help="default: 40")
    p.add_argument("--starts", type=int, default=4, metavar="N", help="of the processes, among the rounds (default: 4)")
    p.add_argument("--models", default=MODELS, type=lambda text: text.split(","), help="default: " + ",".join(MODELS))
    p.add_argument("--variants", default=list(VARIANTS), type=lambda text: text.split(","), help="default: all")
    p.add_argument("--no-training", action="store_true", help="the loaders and the compiler alone")
    p.add_argument("--no-loaders", action="store_true")
    p.add_argument("--no-compiler", action="store_true")
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    for chosen, there, kind in ((a.models, MODELS, "model"), (a.variants, list(VARIANTS), "variant")):
        for name in chosen:
            if name not in there:
                p.error("no such %s: %s; there are %s" % (kind, name, ", ".join(there)))
    if a.rounds < 1 or a.starts < 1:
        p.error("--rounds and --starts: at least 1")
    if not os.path.exists(os.path.join(a.build, "CMakeCache.txt")):
        p.error("no build in %s; make one (scripts/build) or name it with --build" % a.build)
    base = os.path.realpath(tempfile.mkdtemp(prefix="accelerate-bench-"))
    try:
        Bench(a, base).all()
    except (Wrong, subprocess.CalledProcessError) as e:
        print("bench: error: %s" % e, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
