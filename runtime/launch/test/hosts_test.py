"""Jobs over two hosts, which are network namespaces of this machine joined by a cable.

Usage: hosts_test.py LAUNCHER PROGRAM

Runs PROGRAM (faulty_training.cpp) on two ranks of each host: to the end; with a rank killed that the hosts' launchers
start again, each its own ranks, which must end with bit for bit the same weights; with a host that has the other's
number; and with the cable cut in mid-run, after which both sides must end within the timeout and ten seconds, not with
0, and name who is missing. Making namespaces needs root: where that isn't permitted, says so and exits with 77.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
TIMEOUT = 10  # seconds
MARGIN = 10
PATIENCE = 120
ADDRESSES = ["10.77.0.1", "10.77.0.2"]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


class Hosts:
    """host-0 and host-1, until the end of the block."""

    def __init__(self):
        self.names = [f"launch-test-{os.getpid()}-{i}" for i in range(2)]

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            undo.callback(self.remove)
            for name in self.names:
                self.check("ip", "netns", "add", name)
            a, b = self.names
            self.check("ip", "link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b)
            for name, address in zip(self.names, ADDRESSES):
                self.check("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "cable")
                self.check("ip", "-n", name, "link", "set", "lo", "up")
                self.check("ip", "-n", name, "link", "set", "cable", "up")
                self.check(*self.command(name, "true"))
            undo.pop_all()
        return self

    def __exit__(self, *_):
        self.remove()

    def check(self, *command):
        result = run(*command)
        if result.returncode != 0:
            print(f"hosts_test.py: skipped: network namespaces can't be made here: {' '.join(command)}: "
                  f"{result.stderr.strip()}")
            sys.exit(SKIPPED)

    def remove(self):
        for name in self.names:
            run("ip", "netns", "delete", name)

    def command(self, name, *command):
        """A command on that host, which has a name of its own."""
        host = f"host-{self.names.index(name)}"
        return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", f'hostname {host} && exec "$@"', "sh", *command]

    def launch(self, machine, launcher, program, folder, fault=(), flags=(), number=None, timeout=TIMEOUT, **variables):
        """Starts that host's part of a job; `number` is its number if it is mistaken about it."""
        environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("ACCELERATE_", "TORCHELASTIC_", "GLOO_"))
        }
        environment.update({"OMP_NUM_THREADS": "1", "HOME": folder, **variables})
        command = [launcher, "launch", "--cpu", "-n", "4", "--num_machines", "2"]
        command += ["--machine_rank", str(machine if number is None else number), "--main_process_ip", ADDRESSES[0]]
        command += ["--timeout", str(timeout), *flags, "--", program, folder, *fault]
        output = open(os.path.join(folder, f"output.{machine}"), "w")
        return subprocess.Popen(
            self.command(self.names[machine], *command),
            env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )

    def cut(self):
        run("ip", "-n", self.names[1], "link", "set", "cable", "down")


def output_of(folder, machine):
    with open(os.path.join(folder, f"output.{machine}"), errors="replace") as file:
        return file.read()


def ends(processes):
    """The exit codes, and how many seconds each took from now."""
    start = time.monotonic()
    seconds = [None, None]
    while None in seconds and time.monotonic() < start + PATIENCE:
        for i, process in enumerate(processes):
            if seconds[i] is None and process.poll() is not None:
                seconds[i] = time.monotonic() - start
        time.sleep(0.05)
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()
    return [process.returncode for process in processes], seconds


def weights(folder):
    with open(os.path.join(folder, "final", "model.safetensors"), "rb") as file:
        return file.read()


def check_whole_job_and_restarts(hosts, launcher, program, folder):
    codes, _ = ends([hosts.launch(machine, launcher, program, folder, timeout=PATIENCE) for machine in range(2)])
    assert codes == [0, 0], f"a job over two hosts ended with {codes}"
    expected = weights(folder)
    print("a job over two hosts: passed", flush=True)
    # Before the ranks meet, so that host-0's wait for it; when they train; and the one that serves the others.
    for where, victim in (("start", 3), ("backward", 2), ("backward", 0)):
        for left in ("checkpoints", "final", "fault"):
            subprocess.run(["rm", "-rf", os.path.join(folder, left)], check=True)
        codes, _ = ends([
            hosts.launch(machine, launcher, program, folder, fault=[where, "kill", str(victim)],
                         flags=["--max_restarts", "1"], timeout=PATIENCE)
            for machine in range(2)
        ])
        what = f"a job over two hosts whose rank {victim} is killed at {where}"
        assert codes == [0, 0], f"{what} ended with {codes}"
        assert os.path.exists(os.path.join(folder, "fault")), f"{what}: it wasn't"
        for machine in range(2):
            assert "restart 1 of 1" in output_of(folder, machine), f"{what}: host-{machine} didn't start again"
        assert weights(folder) == expected, f"{what} has other weights"
        print(f"{what}: passed", flush=True)


def check_same_number(hosts, launcher, program, folder):
    codes, _ = ends([hosts.launch(machine, launcher, program, folder, number=0) for machine in range(2)])
    assert 0 not in codes, f"two hosts with the same number ended with {codes}"
    said = "".join(output_of(folder, machine) for machine in range(2))
    assert re.search(r"there is a rank of this number already \(process \d+ on host-[01]\)", said), "it isn't said why"
    print("two hosts with the same number: passed", flush=True)


def check_cut(hosts, launcher, program, folder):
    variables = {"FAULTY_STEPS": "100000", "FAULTY_PAUSE_MS": "20"}
    processes = [hosts.launch(machine, launcher, program, folder, **variables) for machine in range(2)]
    end = time.monotonic() + PATIENCE
    while not os.path.exists(os.path.join(folder, "checkpoints", "checkpoint_2")):
        assert time.monotonic() < end and all(process.poll() is None for process in processes), "the job doesn't run"
        time.sleep(0.05)
    hosts.cut()
    codes, seconds = ends(processes)
    print(f"one host cut off: ended with {codes} after {seconds} s (timeout {TIMEOUT} s)")
    missing = [r"No sign of life from rank [23] \(process \d+ on host-1\)", r"rank 0 \(at 10\.77\.0\.1\)|on host-0\)"]
    for machine in range(2):
        assert seconds[machine] is not None, f"host-{machine} doesn't end"
        assert codes[machine] != 0, f"host-{machine} ended with 0"
        assert seconds[machine] < TIMEOUT + MARGIN, f"host-{machine} ended after {seconds[machine]:.1f} s"
        assert re.search(missing[machine], output_of(folder, machine)), f"host-{machine} doesn't say who is missing"
    print("one host cut off: passed")


def main():
    launcher, program = map(os.path.abspath, sys.argv[1:])
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        print("hosts_test.py: skipped: it needs the commands ip (iproute2) and unshare")
        return SKIPPED
    failed = 0
    with Hosts() as hosts:
        for check in (check_whole_job_and_restarts, check_same_number, check_cut):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    check(hosts, launcher, program, folder)
                except AssertionError as error:
                    failed += 1
                    print(f"FAILED: {error}")
                    for machine in range(2):
                        print(f"--- host-{machine}:\n{output_of(folder, machine)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
