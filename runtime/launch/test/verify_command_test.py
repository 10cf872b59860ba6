"""The command `verify` of accelerate-cpp: files, signals, failures. What it compares: verify_test.cpp, runtime/test/verify."""

import ctypes
import glob
import json
import os
import shutil
import signal
import subprocess
import unittest

from launcher import COMMAND, PATIENCE, LaunchTestCase


class Verify(LaunchTestCase):
    """What verify does with files, signals and failures. Shell scripts tell what they have trained in the recorder's
    place, which is another library here."""

    TRAINING = """\
rank=${RANK:-0}; world=${WORLD_SIZE:-1}; print='0,"h",1,1,1,1,1,1,1,1,1'
{
  echo '{"event":"start","version":1,"rank":'$rank',"world":'$world'}'
  echo '{"event":"tensor","id":0,"kind":"parameter","name":"w","dtype":"Float","shape":[2]}'
  echo '{"event":"values","values":[['$print']]}'
  echo '{"event":"backward","n":0,"loss":'$((rank + 1))',"dtype":"Float","weight":'$((rank == 0))',"rows":'$((rank == 0))',"global_rows":1,"gradients":[['$print']]}'
} > $ACCELERATE_RECORD/rank$rank.jsonl
"""

    def verify(self, *flags, original="", migrated=None, **variables):
        return self.run_command(
            *self.verify_command(original, original if migrated is None else migrated, *flags), **variables
        )

    def verify_command(self, original, migrated, *flags):
        """`original` and `migrated` come behind the training."""
        programs = [self.program(self.TRAINING + original, "original"), self.program(self.TRAINING + migrated, "migrated")]
        ctypes.CDLL("libm.so.6")
        with open("/proc/self/maps") as maps:
            recorder = next(line.split()[-1] for line in maps if "/libm.so" in line)
        return ["verify", "--cpu", "--recorder", recorder, "--original", programs[0], "--migrated", programs[1], *flags]

    def test_same_and_not_the_same(self):
        result = self.verify("--ranks", "2")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        result = self.verify("--ranks", "2", migrated="echo more\n")
        self.assertEqual(result.returncode, 4, result.stdout + result.stderr)

    def test_reports(self):
        result = self.verify("--ranks", "none", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(json.loads(result.stdout)["same"])
        self.assertIn("the same training\n", result.stderr)
        # Both in one file, one behind the other.
        with open(self.path("out"), "w") as out:
            command = [COMMAND, *self.verify_command("", "", "--ranks", "none", "--json", "/dev/stdout")]
            subprocess.run(command, cwd=self.folder, env=self.environment, stdout=out, timeout=PATIENCE, check=True)
        text, document = self.read("out").split("the same training\n")
        self.assertTrue(text.startswith("original "), text)
        self.assertTrue(json.loads(document)["same"])
        self.write("kept", "old")
        os.symlink("kept", self.path("link"))
        self.assertEqual(self.verify("--ranks", "none", "--json", "link").returncode, 0)
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertTrue(json.loads(self.read("kept"))["same"])

    def test_several_documents(self):
        result = self.verify("--ranks", "none", "--json", "one.json", "--json=two.json", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.read("one.json"), result.stdout)
        self.assertEqual(self.read("two.json"), result.stdout)

    def test_what_cannot_be_recorded(self):
        result = self.run_command(*self.verify_command("", "")[:-2], "--migrated", "/bin/true", "--ranks", "none",
                                  "--json", "-")
        self.assertEqual(result.returncode, 4, result.stderr)
        first = json.loads(result.stdout)["runs"][0]["first_difference"]
        self.assertEqual(first["what"], "nothing was recorded")
        self.assertIn("the program has to be an executable that is linked with LibTorch's shared", first["explanation"])
        script = self.program("exit 0\n")
        command = self.verify_command("", "")
        command[command.index("--original") + 1] = script
        result = self.run_command(*command, "--ranks", "none")
        self.assertEqual(result.returncode, 3)
        self.assertIn(f"nothing was recorded of the original: {script} is a script; ", result.stderr)

    def test_reports_that_cannot_be_written(self):
        os.mkdir(self.path("reports"))
        for flag in ("--json", "--html"):
            result = self.verify("--ranks", "none", flag, "reports", original="touch $HOME-ran")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"cannot write reports: it is a folder; choose another place with {flag}", result.stderr)
            self.assertFalse(os.path.exists(self.path("home-ran")))

    def test_signals(self):
        """It stops what it runs, alone and on ranks, and leaves nothing."""
        os.mkdir(self.path("temporary"))
        self.environment["TMPDIR"] = self.path("temporary")
        wait = f'echo $$ > {self.folder}/id.$rank; while :; do sleep 0.05; done\n'
        for number, on_ranks in ((signal.SIGTERM, False), (signal.SIGINT, True), (signal.SIGHUP, True)):
            with self.subTest(number):
                wait_where = '[ -z "$WORLD_SIZE" ] && ' * (not on_ranks) + '[ -n "$WORLD_SIZE" ] && ' * on_ranks
                process = self.start(*self.verify_command("", f"if {wait_where} true; then {wait} fi\n", "--ranks", "2"))
                ids = self.process_ids(*["id.0", "id.1"][: 1 + on_ranks])
                process.send_signal(number)
                _, stderr = process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, 128 + number, stderr)
                self.assertRegex(stderr, rf"\[accelerate-cpp\] got signal {number} \(.*\): stopping the run '(alone|ranks-2)'\n")
                self.assert_gone(ids)
                self.assertEqual(os.listdir(self.path("temporary")), [])
                for name in glob.glob(self.path("id.*")):
                    os.unlink(name)

    def test_jobs_around_it(self):
        """Its own part in a job isn't the programs'."""
        job = {"RANK": "1", "WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMI_RANK": "1",
               "PMI_SIZE": "2", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "ACCELERATE_NUM_MACHINES": "2",
               "ACCELERATE_MACHINE_RANK": "1", "ACCELERATE_MAIN_PROCESS_IP": "10.0.0.1"}
        result = self.verify("--ranks", "2", original="env | grep -E '^(OMPI|PMI|SLURM|MASTER_ADDR)' | grep -v =127.0.0.1; true\n", **job)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        result = self.verify("--ranks", "none", original="env | grep -qE '^(RANK|WORLD_SIZE)=' && exit 1; exit 0\n", **job)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_failed_rank_is_named(self):
        waited = "echo '[accelerate] rank 0 of 2: backward failed after 1 s (timeout 600 s): closed' >&2; "
        before = "echo 'Before that, rank 1 (process 7 on host) failed: boom' >&2; "
        for number, (zero, one, kind) in enumerate([
            (waited + before + "kill -ABRT $$", "kill -ABRT $$", "failed"),  # it threw
            (waited + "kill -ABRT $$", "kill -SEGV $$", "failed"),
            ("sleep 5", "exit 3", "failed"),
            (waited + "kill -ABRT $$", "sleep 5", "hang"),
        ]):
            with self.subTest(one):
                # Rank 0 notices later than it happens, however busy the machine is.
                mark = self.path(f"rank1-{number}")
                migrated = (f'[ "$WORLD_SIZE" = 2 ] || exit 0\nif [ $RANK = 1 ]; then echo > {mark}; {one}; '
                            f"else until [ -e {mark} ]; do sleep 0.05; done; sleep 0.5; {zero}; fi\n")
                result = self.verify("--ranks", "2", "--json", "report.json", migrated=migrated)
                self.assertEqual(result.returncode, 4, result.stderr)
                first = json.loads(self.read("report.json"))["runs"][1]["first_difference"]
                self.assertEqual((first["kind"], first.get("rank", 1)), (kind, 1), first)
                self.assertTrue("rank" in first or kind == "hang", first)

    def test_ignored_files(self):
        """Neither what only one program writes, nor what several ranks write, nor other contents; and nothing else."""
        write = "mkdir -p logs; echo {0} > logs/run.txt; echo {0} > times.csv\n"
        programs = {"original": write.format(1), "migrated": write.format(2) + "echo > logs/more.txt\n"}
        for ignored, status in ((["logs/*", "times.csv"], 0), (["logs/*"], 4), (["times.csv"], 4), (["logs/more*"], 4),
                                (["*"], 0), ([], 4)):
            with self.subTest(ignored):
                flags = [word for pattern in ignored for word in ("--ignore", pattern)]
                result = self.verify("--ranks", "2", "--json", "report.json", *flags, **programs)
                self.assertEqual(result.returncode, status, result.stdout + result.stderr)
                first = json.loads(self.read("report.json"))["runs"][0]["first_difference"]
                self.assertEqual(first and first["kind"], "files" if status else None)

    def test_files_of_numbers(self):
        """On ranks the last bits of a file's numbers may differ, and no others."""
        write = "import array, os, sys; array.array('f', [float(x) for x in sys.argv[2:]]).tofile(open(sys.argv[1], 'wb'))"
        self.write("write.py", write)
        command = f'python3 {self.path("write.py")} scores.bin '
        ranks = lambda numbers: f'if [ -z "$WORLD_SIZE" ]; then {command} 1 2 3; elif [ $RANK = 0 ]; then {command} {numbers}; fi\n'
        for numbers, what in (("1 2.00001 3", None), ("1 1 1.5", "the file has other numbers (relative difference 5.0e-01)"),
                              ("1 2", "the file has 8 bytes, the original's 12")):
            with self.subTest(numbers):
                result = self.verify("--ranks", "2", "--json", "report.json", original=command + "1 2 3\n",
                                     migrated=ranks(numbers))
                self.assertEqual(result.returncode, 4 if what else 0, result.stdout + result.stderr)
                first = json.loads(self.read("report.json"))["runs"][1]["first_difference"]
                self.assertEqual(first and first["what"], what)

    def test_what_is_kept(self):
        """The programs' folders: with --keep, and where something differs; else nothing."""
        os.mkdir(self.path("temporary"))
        self.environment["TMPDIR"] = self.path("temporary")
        for flags, migrated in ((["--keep"], "echo 1 > out.txt\n"), ([], "echo 2 > out.txt\n"), ([], "echo 1 > out.txt\n")):
            with self.subTest(flags, migrated=migrated):
                result = self.verify("--ranks", "none", *flags, original="echo 1 > out.txt\n", migrated=migrated)
                kept = glob.glob(self.path("temporary/*"))
                self.assertEqual(len(kept), 1 if flags or "2" in migrated else 0, result.stderr)
                for folder in kept:
                    self.assertIn(f"what the programs wrote is kept in {folder}\n", result.stderr)
                    self.assertEqual(self.read(os.path.join(folder, "original/folder/out.txt")), "1\n")
                    self.assertEqual("echo " + self.read(os.path.join(folder, "alone/folder/out.txt")).strip() + " > out.txt\n", migrated)
                    shutil.rmtree(folder)

    def test_folders_of_the_user_are_left_alone(self):
        os.makedirs(self.path("project/original"))
        self.write("project/original/code", "precious")
        result = self.verify("--ranks", "none", "--work", "project")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("--work: project isn't empty", result.stderr)
        self.assertEqual(self.read("project/original/code"), "precious")
        os.mkdir(self.path("empty"))
        for work in ("empty", "new", "new"):
            result = self.verify("--ranks", "none", "--work", work)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertEqual(sorted(os.listdir(self.path(work))), [".accelerate-verify", "alone", "original"])


if __name__ == "__main__":
    unittest.main()
