"""What accelerate-cpp launch does about failures, signals and the terminal."""

import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import time
import unittest

from launcher import COMMAND, PATIENCE, LaunchTestCase, is_running, wait_until


class Failure(LaunchTestCase):
    def test_exit_code_of_the_first_to_fail(self):
        program = self.program('[ $RANK = 0 ] && exec sleep 60\necho "out of luck" >&2\nexit 3\n')
        start = time.monotonic()
        result = self.run_command("launch", "-n", "2", program)
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(result.returncode, 3)
        self.assertIn("[accelerate-cpp] rank 1 exited with code 3\n", result.stderr)
        self.assertIn("\n    out of luck\n", result.stderr)
        self.assertIn("[accelerate-cpp] stopping the other 1 rank\n", result.stderr)

    def test_others_that_fail_on_its_account(self):
        program = self.program(
            "[ $RANK = 2 ] && touch failing && exit 7\n"
            "while [ ! -e failing ]; do sleep 0.01; done\nsleep 0.05; exit 1\n"
        )
        result = self.run_command("launch", "-n", "3", program)
        self.assertEqual(result.returncode, 7)
        self.assertIn("[accelerate-cpp] rank 2 exited with code 7\n", result.stderr)
        self.assertIn("[accelerate-cpp] rank 0 also failed: it exited with code 1\n", result.stderr)
        self.assertIn("[accelerate-cpp] rank 1 also failed: it exited with code 1\n", result.stderr)

    def test_killed_by_a_signal(self):
        program = self.program("[ $RANK = 0 ] && exec sleep 60\nkill -9 $$\n")
        result = self.run_command("launch", "-n", "2", program)
        self.assertEqual(result.returncode, 128 + 9)
        self.assertIn("[accelerate-cpp] rank 1 was killed by signal 9 (Killed); ", result.stderr)

    def test_error_file(self):
        """What the program wrote there is shown, in place of the last lines of its stderr."""
        self.write("error.json", json.dumps({"message": {"message": "out of luck\nand time"}}))
        program = self.program(
            "[ $RANK = 0 ] && exec sleep 60\necho frame >&2\ncp error.json $TORCHELASTIC_ERROR_FILE; exit 3\n"
        )
        result = self.run_command("launch", "-n", "2", program)
        self.assertEqual(result.returncode, 3)
        self.assertIn("[accelerate-cpp] its error:\n    out of luck\n    and time\n", result.stderr)
        self.assertNotIn("    frame", result.stderr)
        # And of rank 0, whose stderr the launcher doesn't see.
        result = self.run_command(
            "launch", self.program("""echo '{"message": "plain"}' > $TORCHELASTIC_ERROR_FILE; exit 4\n""")
        )
        self.assertIn("[accelerate-cpp] rank 0 exited with code 4\n[accelerate-cpp] its error:\n    plain\n", result.stderr)
        for text in ("", "{", "[]", '{"message": 3}'):
            result = self.run_command("launch", self.program(f"echo '{text}' > $TORCHELASTIC_ERROR_FILE; exit 5\n"))
            self.assertEqual(result.returncode, 5)
            self.assertNotIn("its error", result.stderr)

    def test_error_files_are_removed(self):
        os.mkdir(self.path("temporary"))
        program = self.program("echo '{}' > $TORCHELASTIC_ERROR_FILE; exit 1\n")
        self.run_command("launch", program, TMPDIR=self.path("temporary"))
        self.assertEqual(os.listdir(self.path("temporary")), [])

    def test_rank_that_had_ended_well_is_named(self):
        program = self.program("[ $RANK = 1 ] && exit 0\nsleep 0.5; exit 6\n")
        result = self.run_command("launch", "-n", "2", program)
        self.assertEqual(result.returncode, 6)
        self.assertIn("[accelerate-cpp] rank 0 exited with code 6\n", result.stderr)
        self.assertIn("[accelerate-cpp] rank 1 had ended before, with code 0\n", result.stderr)

    def test_stopped_rank_is_named(self):
        program = self.program("echo $$ > id.$RANK\n[ $RANK = 1 ] && kill -STOP $$\nsleep 0.5; exit 6\n")
        result = self.run_command("launch", "-n", "2", program)
        self.assertEqual(result.returncode, 6)
        self.assertRegex(result.stderr, r"rank 1 is stopped by signal 19 \(.*\); the others wait for it for at most 600 s\n")
        self.assertRegex(result.stderr, r"rank 1 is stopped by signal 19 \(.*\) since 0\.\d s\n")
        self.assert_gone(self.process_ids("id.0", "id.1"))

    def test_stopped_rank_that_nobody_waits_for(self):
        program = self.program("echo $$ > id.$RANK\n[ $RANK = 1 ] && kill -STOP $$\nexit 0\n")
        start = time.monotonic()
        result = self.run_command("launch", "-n", "2", "--timeout", "1", program)
        self.assertLess(time.monotonic() - start, 11)
        self.assertEqual(result.returncode, 128 + signal.SIGSTOP)
        self.assertIn("rank 1 is stopped by signal 19", result.stderr)
        self.assert_gone(self.process_ids("id.0", "id.1"))

    def test_rank_that_goes_on_has_not_failed(self):
        program = self.program("echo $$ > id.$RANK\n[ $RANK = 1 ] && kill -STOP $$\nexit 0\n")
        process = self.start("launch", "-n", "2", "--timeout", "1", program)
        stopped = self.process_ids("id.0", "id.1")[1]
        time.sleep(0.5)
        os.kill(stopped, signal.SIGCONT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)

    def test_rank_that_ignores_sigterm_is_killed(self):
        program = self.program(
            "[ $RANK = 0 ] && sleep 0.3 && exit 4\ntrap '' TERM\necho $$ > id\nwhile :; do sleep 0.05; done\n"
        )
        result = self.run_command("launch", "-n", "2", "--grace_period", "0.3", program)
        self.assertEqual(result.returncode, 4)
        self.assertIn("1 rank did not stop within 0.3 s: killed", result.stderr)
        self.assert_gone(self.process_ids("id"))

    def test_no_grandchild_outlives_the_group(self):
        # One in the process group of its rank and one in a session of its own.
        program = self.program(
            "sleep 60 & echo $! > plain.$RANK\nsetsid sh -c 'echo $$ > session.'$RANK'; exec sleep 60' &\n"
            "while [ ! -s session.0 -o ! -s session.1 ]; do sleep 0.01; done\n"
            "[ $RANK = 1 ] && exit 3\nwait\n"
        )
        result = self.run_command("launch", "-n", "2", program)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assert_gone(self.process_ids("plain.0", "plain.1", "session.0", "session.1"))

    def test_background_process_does_not_hold_up_success(self):
        program = self.program("sleep 60 & echo $! > id.$RANK\necho done $RANK\n")
        process = self.start("launch", "-n", "2", program)
        self.assertEqual(process.wait(timeout=PATIENCE), 0)
        for left in self.process_ids("id.0", "id.1"):
            os.kill(left, signal.SIGKILL)

    def test_much_output_is_not_lost(self):
        program = self.program("[ $RANK = 0 ] && exit 0\nseq 100000\n")
        lines = self.run_command("launch", "-n", "2", program).stdout.splitlines()
        self.assertEqual(len(lines), 100000)
        self.assertEqual(lines[-1], "[rank 1] 100000")


class Restarts(LaunchTestCase):
    UNLUCKY = (
        "echo $TORCHELASTIC_RESTART_COUNT/$TORCHELASTIC_MAX_RESTARTS $MASTER_PORT >> lives.$RANK\n"
        "[ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT -lt 2 ] && exit 3\n[ $TORCHELASTIC_RESTART_COUNT = 2 ] || sleep 60\n"
    )

    def test_until_it_works(self):
        result = self.run_command("launch", "-n", "2", "--max_restarts", "2", self.program(self.UNLUCKY))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("rank 1 exited with code 3"), 2)
        self.assertIn("[accelerate-cpp] restart 2 of 2\n", result.stderr)
        for rank in (0, 1):
            lives = [line.split()[0] for line in self.read(f"lives.{rank}").splitlines()]
            self.assertEqual(lives, ["0/2", "1/2", "2/2"])

    def test_until_there_are_none_left(self):
        result = self.run_command("launch", "-n", "2", "--max-restarts", "1", self.program(self.UNLUCKY))
        self.assertEqual(result.returncode, 3)
        self.assertEqual(len(self.read("lives.0").splitlines()), 2)

    def test_logs_of_all_lives_are_kept(self):
        program = self.program("echo life $TORCHELASTIC_RESTART_COUNT >&2\n" + self.UNLUCKY)
        for _ in range(2):  # a new job begins anew
            self.run_command("launch", "-n", "2", "--max_restarts", "2", "--log_dir", "logs", program)
        self.assertEqual(self.read("logs/rank1.err"), "life 0\nlife 1\nlife 2\n")

    def test_the_port_asked_for_is_kept(self):
        with socket.socket() as listener:
            listener.bind(("", 0))
            port = str(listener.getsockname()[1])
        self.run_command("launch", "-n", "2", "--max_restarts", "2", "--main_process_port", port, self.program(self.UNLUCKY))
        self.assertEqual({line.split()[1] for line in self.read("lives.0").splitlines()}, {port})

    def test_no_restart_after_a_signal(self):
        program = self.program("echo $$ > id.$RANK\nexec sleep 60\n")
        process = self.start("launch", "-n", "2", "--max_restarts", "3", program)
        self.process_ids("id.0", "id.1")
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertNotIn("restart", stderr)

    def test_without_the_flag_there_is_no_count(self):
        program = self.program('echo "[$TORCHELASTIC_RESTART_COUNT]"\n')
        self.assertEqual(self.run_command("launch", program, TORCHELASTIC_RESTART_COUNT="4").stdout, "[]\n")


class Signals(LaunchTestCase):
    SLEEPER = "echo $$ > id.$RANK\nexec sleep 60\n"

    def test_sigterm_is_forwarded(self):
        process = self.start("launch", "-n", "2", self.program(self.SLEEPER))
        ids = self.process_ids("id.0", "id.1")
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("got signal 15 (Terminated)", stderr)
        self.assertNotIn("rank 1 was killed", stderr)
        self.assert_gone(ids)

    def test_program_may_end_well_on_a_signal(self):
        script = "trap 'echo saved > saved.$RANK; exit 0' INT\necho $$ > id.$RANK\nwhile :; do sleep 0.05; done\n"
        process = self.start("launch", "-n", "2", self.program(script))
        self.process_ids("id.0", "id.1")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.read("saved.1"), "saved\n")

    def test_user_signal_does_not_stop_the_group(self):
        script = "trap 'echo > got.$RANK; exit 0' USR1\necho $$ > id.$RANK\nwhile :; do sleep 0.05; done\n"
        process = self.start("launch", "-n", "2", self.program(script))
        self.process_ids("id.0", "id.1")
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(os.path.exists(self.path("got.1")))

    def test_second_signal_kills(self):
        script = "trap '' INT\necho $$ > id.$RANK\nwhile :; do sleep 0.05; done\n"
        process = self.start("launch", "-n", "2", self.program(script))
        ids = self.process_ids("id.0", "id.1")
        process.send_signal(signal.SIGINT)
        time.sleep(1.2)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assert_gone(ids)

    def test_ranks_die_with_the_launcher(self):
        process = self.start("launch", "-n", "2", self.program(self.SLEEPER))
        ids = self.process_ids("id.0", "id.1")
        process.kill()
        process.communicate(timeout=PATIENCE)
        self.assert_gone(ids)

    def test_nohup_stays_in_force(self):
        program = self.program(self.SLEEPER)
        process = subprocess.Popen(
            ["nohup", COMMAND, "launch", program],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        ids = self.process_ids("id.0")
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        process.terminate()
        process.wait(timeout=PATIENCE)
        self.assert_gone(ids)


class Terminal(LaunchTestCase):
    def test_rank_0_has_the_terminal(self):
        """Rank 0 sees a terminal, may read from it, and Ctrl-C reaches every rank once."""
        program = self.program(
            "if [ $RANK = 0 ]; then read word; stty -echo; test -t 0 -a -t 1 -a -t 2 && echo \"terminal $word\"; fi\n"
            "trap 'echo stopped >> stopped.$RANK; exit 0' INT\necho $$ > id.$RANK\nwhile :; do sleep 0.05; done\n"
        )
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.execve(COMMAND, [COMMAND, "launch", "-n", "2", program], self.environment)
        self.addCleanup(os.close, terminal)
        output = b""
        os.write(terminal, b"hello\n")
        end = time.monotonic() + PATIENCE
        while b"terminal hello" not in output and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                output += os.read(terminal, 4096)
        self.assertIn(b"terminal hello", output)
        self.process_ids("id.0", "id.1")
        os.write(terminal, b"\x03")
        wait_until(lambda: not is_running(process), "the launcher has ended")
        status = os.waitpid(process, 0)[1]
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertEqual(self.read("stopped.0"), "stopped\n")
        self.assertEqual(self.read("stopped.1"), "stopped\n")


    def test_bars_pass_unchanged(self):
        """The main process sees the terminal's width, and what it writes arrives as it is: colours, carriage returns."""
        program = self.program(
            "[ $RANK = 0 ] || exit 0\n"
            "printf '\\033[32mgreen\\033[0m 10%%\\r\\033[32mgreen\\033[0m 90%%'; stty size; exit 0\n"
        )
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            time.sleep(0.2)  # the parent sets the size
            os.execve(COMMAND, [COMMAND, "launch", "-n", "2", program], self.environment)
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 177, 0, 0))
        output = b""
        end = time.monotonic() + PATIENCE
        while b"33 177" not in output and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                output += os.read(terminal, 4096)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), 0)
        self.assertIn(b"\x1b[32mgreen\x1b[0m 10%\r\x1b[32mgreen\x1b[0m 90%33 177", output)


if __name__ == "__main__":
    unittest.main()
