"""accelerate-cpp test: each step passes, and each can fail."""

import json
import os
import socket
import subprocess
import unittest

from launcher import COMMAND, LaunchTestCase


class SelfCheck(LaunchTestCase):
    STEPS = ["rendezvous", "collectives", "sharding", "gradient parity", "checkpoint round trip"]

    def run_test(self, *flags, **variables):
        return subprocess.run(
            [COMMAND, "test", "--cpu", *flags], cwd=self.folder, env={**self.environment, **variables},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        )

    def test_all_is_well(self):
        for ranks in ("1", "3"):
            result = self.run_test("-n", ranks)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            lines = result.stdout.splitlines()
            self.assertEqual([line[:24].rstrip() for line in lines], self.STEPS)
            self.assertTrue(all(line[24:26] == "ok" for line in lines), result.stdout)
            self.assertIn("[accelerate-cpp] test: all steps passed\n", result.stderr)

    def test_each_step_can_fail(self):
        for step in self.STEPS[1:]:
            result = self.run_test("-n", "2", ACCELERATE_SELF_CHECK_SPOIL=step)
            self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
            self.assertRegex(result.stderr, rf"\[accelerate-cpp\] test: failed in the step '{step}' on rank [01]\n")
            self.assertRegex(result.stderr, rf"(?m)^(\[rank 1\] )?{step}: .* on rank 1$")
            self.assertRegex(result.stdout, rf"(?m)^{step} +FAILED$")

    def test_no_rendezvous(self):
        flags = ["-n", "2", "--num_machines", "2", "--machine_rank", "0", "--main_process_ip", "127.0.0.1"]
        with socket.socket() as listener:
            listener.bind(("", 0))
            port = str(listener.getsockname()[1])
        result = self.run_test(*flags, "--main_process_port", port, "--timeout", "2", "--checkpoint_dir", ".")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("test: failed in the step 'rendezvous' on rank 0\n", result.stderr)
        self.assertIn("these ranks haven't started: 1", result.stderr)

    def test_no_place_for_checkpoints(self):
        self.write("file", "")
        result = self.run_test("-n", "2", "--checkpoint_dir", self.path("file"))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("test: failed in the step 'checkpoint round trip' on rank ", result.stderr)

    def test_other_folders_are_left_alone(self):
        """A folder with the name of ours is the user's; what we make is gone at the end, whatever killed us before."""
        os.makedirs(self.path("mine/accelerate-self-check"))
        self.write("mine/accelerate-self-check/weights", "precious")
        result = self.run_test("--checkpoint_dir", "mine")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("--checkpoint_dir: mine/accelerate-self-check exists", result.stderr)
        self.assertEqual(self.read("mine/accelerate-self-check/weights"), "precious")
        os.makedirs(self.path("left/accelerate-self-check"))
        self.write("left/accelerate-self-check/.accelerate-cpp-test", "")
        self.write("left/other", "precious")
        result = self.run_test("--checkpoint_dir", "left")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(os.listdir(self.path("left")), ["other"])

    def test_env_tells_versions(self):
        report = json.loads(self.run_command("env", "--json").stdout)
        self.assertRegex(report["runtime"]["LibTorch"], r"^\d+\.\d+\.\d+")
        self.assertIn("libaccelerate", report["runtime"])
        self.assertIn(f"- LibTorch: {report['runtime']['LibTorch']}\n", self.run_command("env").stdout)


if __name__ == "__main__":
    unittest.main()
