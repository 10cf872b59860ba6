"""Runs accelerate-cpp as a user would, with small shell scripts in the place of training programs.

The tests that import this are called as TEST.py /path/to/accelerate-cpp [unittest arguments].
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = os.path.abspath(sys.argv.pop(1))
PATIENCE = 20  # seconds; nothing here should take more than two


def is_running(process):
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE} s until {what}")
        time.sleep(0.01)


class LaunchTestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        ours = ("ACCELERATE_", "CUDA_VISIBLE", "OMP_", "XDG_", "RANK", "MASTER_", "WORLD_", "LOCAL_", "TORCHELASTIC_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environment["HOME"] = os.path.join(self.folder, "home")

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def program(self, script, name="program"):
        """A program that runs `script`; $RANK tells the ranks apart."""
        path = self.write(name, "#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return path

    def run_command(self, *arguments, stdin="", **variables):
        return subprocess.run(
            [COMMAND, *arguments],
            cwd=self.folder,
            env={**self.environment, **variables},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def start(self, *arguments):
        process = subprocess.Popen(
            [COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        def end():
            process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def process_ids(self, *names):
        """The numbers in files that programs write, once they are all there."""

        def text(name):
            return self.read(name) if os.path.exists(self.path(name)) else ""

        wait_until(lambda: all(text(name).endswith("\n") for name in names), f"{names} are written")
        ids = [int(text(name)) for name in names]
        for process in ids:
            self.addCleanup(lambda process=process: is_running(process) and os.kill(process, signal.SIGKILL))
        return ids

    def assert_gone(self, processes):
        wait_until(lambda: not any(is_running(process) for process in processes), f"{processes} are gone")
