"""The command line of accelerate-cpp, its configuration, and what each rank gets."""

import ctypes
import glob
import json
import os
import signal
import socket
import subprocess
import time
import unittest

from launcher import COMMAND, PATIENCE, LaunchTestCase


# What `accelerate config` of the Python package writes for four processes on CPUs.
PYTHON_FILE = """\
compute_environment: LOCAL_MACHINE
debug: true
distributed_type: MULTI_CPU
downcast_bf16: 'no'
enable_cpu_affinity: false
ipex_config:
  ipex: false
machine_rank: 0
main_training_function: main
mixed_precision: bf16
mpirun_config:
  mpirun_ccl: '1'
  mpirun_hostfile: /home/user/hostfile
num_machines: 1
num_processes: 4
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: true
"""


class CommandLine(LaunchTestCase):
    def test_bare_call_prints_help(self):
        result = self.run_command()
        self.assertEqual(result.returncode, 1)
        for command in ("config", "env", "launch", "test"):
            self.assertIn(f"\n  {command} ", result.stdout)

    def test_version(self):
        result = self.run_command("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^accelerate-cpp \d+\.\d+\.\d+\n$")

    def test_help_states_exit_codes(self):
        for command in ([], ["launch"], ["config"], ["config", "default"], ["env"], ["test"]):
            result = self.run_command(*command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("Exit code: 0; ", result.stdout)

    def test_mistakes_exit_with_2(self):
        program = self.program("exit 0\n")
        for arguments, message in [
            (["lunch"], "lunch"),
            (["launch"], "no program to launch"),
            (["launch", "--no_such_flag", program], "--no_such_flag"),
            (["launch", "-n", "0", program], "--num_processes: '0'"),
            (["launch", "--num-processes", "two", program], "--num_processes: 'two'"),
            (["launch", "--mixed_precision", "fp8", program], "--mixed_precision: 'fp8'"),
            (["launch", "--config_file", "missing.yaml", program], "missing.yaml"),
            (["launch", "-n", "4", "--num_machines", "2", program], "--main_process_ip"),
            (["launch", "--multi_gpu", "--cpu", program], "--multi_gpu and --cpu"),
            (["launch", "--timeout", "0", program], "--timeout"),
            (["launch", "--max_restarts", "-1", program], "--max_restarts"),
            (["env", "--config_file", "missing.yaml"], "missing.yaml"),
            (["test", "--config_file", "missing.yaml"], "missing.yaml"),
            (["test", "-n", "2", "--num_machines", "2", "--machine_rank", "0", "--main_process_ip", "10.0.0.1"],
             "--checkpoint_dir"),
        ]:
            with self.subTest(arguments):
                result = self.run_command(*arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn("[accelerate-cpp] error: ", result.stderr)
                self.assertIn(message, result.stderr)


class Launch(LaunchTestCase):
    def test_environment_of_each_rank(self):
        program = self.program('env > env.$RANK; printf "%s\\n" "$*" > arguments.$RANK\n')
        flags = ["-n", "2", "--cpu", "--mixed-precision", "bf16"]
        result = self.run_command("launch", *flags, program, "-n", "5", "--cpu")
        self.assertEqual(result.returncode, 0, result.stderr)
        ports = set()
        for rank in (0, 1):
            variables = dict(line.split("=", 1) for line in self.read(f"env.{rank}").splitlines() if "=" in line)
            self.assertEqual(variables["RANK"], str(rank))
            self.assertEqual(variables["LOCAL_RANK"], str(rank))
            self.assertEqual(variables["WORLD_SIZE"], "2")
            self.assertEqual(variables["LOCAL_WORLD_SIZE"], "2")
            self.assertEqual(variables["MASTER_ADDR"], "127.0.0.1")
            self.assertEqual(variables["OMP_NUM_THREADS"], str(max(1, len(os.sched_getaffinity(0)) // 2)))
            self.assertEqual(variables["ACCELERATE_USE_CPU"], "true")
            self.assertEqual(variables["ACCELERATE_MIXED_PRECISION"], "bf16")
            self.assertEqual(variables["CUDA_VISIBLE_DEVICES"], "")
            self.assertNotIn("ACCELERATE_DEBUG_MODE", variables)
            self.assertNotIn("ACCELERATE_STDOUT", variables)
            self.assertEqual(self.read(f"arguments.{rank}"), "-n 5 --cpu\n")
            ports.add(int(variables["MASTER_PORT"]))
        self.assertEqual(len(ports), 1)

    def test_variables_of_the_user(self):
        names = ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "TORCHELASTIC_USE_AGENT_STORE", "MASTER_PORT")
        program = self.program("echo " + ",".join("$" + name for name in names) + "\n")
        result = self.run_command(
            "launch", "-q", "-n1", program, OMP_NUM_THREADS="7", CUDA_VISIBLE_DEVICES="3", MASTER_PORT="none",
            TORCHELASTIC_USE_AGENT_STORE="True",
        )
        self.assertRegex(result.stdout, r"^7,3,,\d+\n$")
        self.assertEqual(result.stderr, "")

    def test_default_number_of_processes(self):
        program = self.program("echo $WORLD_SIZE > world.$RANK\n")
        result = self.run_command("launch", program, CUDA_VISIBLE_DEVICES="0,1,2")
        self.assertIn("[accelerate-cpp] num_processes: 3 (3 CUDA devices; ", result.stderr)
        self.assertEqual(self.read("world.2"), "3\n")
        result = self.run_command("launch", "--cpu", program, CUDA_VISIBLE_DEVICES="0,1,2")
        self.assertIn("[accelerate-cpp] num_processes: 1 (CPU only; ", result.stderr)

    def test_output_and_input(self):
        program = self.program('read word; echo "out $RANK $word"; echo "err $RANK" >&2\n')
        result = self.run_command("launch", "-n", "3", "--", program, stdin="hello\n")
        self.assertEqual(
            sorted(result.stdout.splitlines()), ["[rank 1] out 1 ", "[rank 2] out 2 ", "out 0 hello"]
        )
        for line in ("err 0", "[rank 1] err 1", "[rank 2] err 2"):
            self.assertIn(line, result.stderr.splitlines())

    def test_timeout_and_threads(self):
        program = self.program("echo $ACCELERATE_TIMEOUT $OMP_NUM_THREADS\n")
        result = self.run_command("launch", "--timeout", "30", "--num-cpu-threads-per-process", "3", program)
        self.assertEqual(result.stdout, "30 3\n")
        result = self.run_command("launch", program, ACCELERATE_TIMEOUT="40", OMP_NUM_THREADS="5")
        self.assertEqual(result.stdout, "40 5\n")

    def test_copies_of_stderr(self):
        program = self.program("echo out; echo err $RANK >&2\n")
        result = self.run_command("launch", "-n", "2", "--log_dir", "logs", program)
        self.assertIn("[rank 1] err 1\n", result.stderr)
        self.assertEqual(self.read("logs/rank1.err"), "err 1\n")
        self.assertFalse(os.path.exists(self.path("logs/rank0.err")))

    def test_log_dir(self):
        program = self.program("echo $ACCELERATE_STDOUT\n")
        result = self.run_command("launch", "--log-dir", "a/logs", program)
        self.assertEqual(result.stdout, "a/logs\n")
        self.assertTrue(os.path.isdir(self.path("a/logs")))
        self.write("file", "")
        self.assertEqual(self.run_command("launch", "--log_dir", "file/logs", program).returncode, 2)

    def test_program_on_path(self):
        self.program("echo found\n", "my-training")
        path = self.folder + ":" + self.environment["PATH"]
        self.assertEqual(self.run_command("launch", "my-training", PATH=path).stdout, "found\n")

    def test_program_named_as_a_command(self):
        result = self.run_command("launch", "env", "WORD=1", "sh", "-c", "echo $WORD $RANK")
        self.assertEqual(result.stdout, "1 0\n", result.stderr)

    def test_program_that_cannot_be_started(self):
        self.write("data", "text\n")
        os.chmod(self.write("noformat", "text\n"), 0o755)
        os.chmod(self.write("nointerpreter", "#!/no/such/interpreter\n"), 0o755)
        self.program("exit 0\n", "here")
        for program, message in [
            ("./missing", "does not exist"),
            ("./data", "not executable"),
            (self.folder, "is a folder"),
            ("here", "did you mean ./here?"),
            ("./noformat", "must begin with #!"),
            ("./nointerpreter", "interpreter is missing"),
        ]:
            with self.subTest(program):
                result = self.run_command("launch", "-n", "2", program)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(message, result.stderr)

    def test_port(self):
        program = self.program("echo $MASTER_PORT\n")
        with socket.socket() as listener:
            listener.bind(("", 0))
            listener.listen()
            port = str(listener.getsockname()[1])
            result = self.run_command("launch", "--main_process_port", port, program)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"port {port} cannot be used", result.stderr)
        self.assertEqual(self.run_command("launch", "--main_process_port", port, program).stdout, port + "\n")

    def test_free_port(self):
        """One that the system doesn't give to outgoing connections, since rank 0 listens on it a moment later."""
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            first = int(file.read().split()[0])
        port = int(self.run_command("launch", self.program("echo $MASTER_PORT\n")).stdout)
        self.assertGreater(port, 0)
        if first > 10000:
            self.assertTrue(10000 <= port < first, port)

    def test_dry_run(self):
        program = self.program("touch ran\n")
        result = self.run_command(
            "launch", "--dry-run", "-n", "4", "--num_machines", "2", "--machine_rank", "1", "--main_process_ip",
            "10.0.0.1", "--gpu_ids", "0,1", "--debug", program, "it's", "", OMP_NUM_THREADS="1",
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [
            f"RANK={rank} LOCAL_RANK={rank - 2} WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 "
            f"ACCELERATE_DEBUG_MODE=true CUDA_VISIBLE_DEVICES=0,1 {program} 'it'\\''s' ''"
            for rank in (2, 3)
        ]
        self.assertEqual(result.stdout.splitlines(), lines)
        self.assertFalse(os.path.exists(self.path("ran")))


class ConfigurationFile(LaunchTestCase):
    def test_file_of_the_python_package_is_obeyed(self):
        self.write("python.yaml", PYTHON_FILE)
        names = ("WORLD_SIZE", "ACCELERATE_USE_CPU", "ACCELERATE_MIXED_PRECISION", "ACCELERATE_DEBUG_MODE")
        program = self.program("echo " + " ".join("$" + name for name in names) + "\n")
        result = self.run_command("launch", "--config_file", "python.yaml", program)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("4 true bf16 true"), 4)
        self.assertIn("[accelerate-cpp] configuration: python.yaml\n", result.stderr)
        self.assertIn("warning: python.yaml:11:1: 'mpirun_config' ", result.stderr)

    def test_precedence(self):
        program = self.program("[ $RANK = 0 ] && echo $WORLD_SIZE $ACCELERATE_MIXED_PRECISION; exit 0\n")
        self.write("accelerate.yaml", "num_processes: 2\nmixed_precision: bf16\nuse_cpu: true\n")
        result = self.run_command("launch", program)
        self.assertEqual(result.stdout, "2 bf16\n")
        self.assertIn("[accelerate-cpp] configuration: ./accelerate.yaml\n", result.stderr)
        variables = {"ACCELERATE_MIXED_PRECISION": "fp16"}
        self.assertEqual(self.run_command("launch", program, **variables).stdout, "2 fp16\n")
        result = self.run_command("launch", "--mixed_precision", "no", "-n", "1", program, **variables)
        self.assertEqual(result.stdout, "1 no\n")
        result = self.run_command("launch", "--no_config", program)
        self.assertEqual(result.stdout, "1\n")
        self.assertIn("[accelerate-cpp] configuration: no file\n", result.stderr)

    def test_gpus_on_the_command_line_overrule_the_cpu_of_a_file(self):
        self.write("accelerate.yaml", "use_cpu: true\n")
        program = self.program('echo "$ACCELERATE_USE_CPU $CUDA_VISIBLE_DEVICES"\n')
        self.assertEqual(self.run_command("launch", program).stdout, "true \n")
        self.assertEqual(self.run_command("launch", "--gpu_ids", "1", program).stdout, "false 1\n")
        self.assertEqual(self.run_command("launch", "--multi_gpu", program, CUDA_VISIBLE_DEVICES="2").stdout, "false 2\n")
        result = self.run_command("launch", "--gpu_ids", "1", "--no_config", program, ACCELERATE_USE_CPU="1")
        self.assertEqual(result.stdout, "false 1\n")
        result = self.run_command("launch", "--gpu_ids", "1", "--cpu", program)
        self.assertEqual(result.stdout, "true \n")
        self.assertIn("warning: --gpu_ids 1 is ignored: --cpu ", result.stderr)

    def test_one_machine_of_a_cluster(self):
        self.write("accelerate.yaml", "num_machines: 2\nmachine_rank: 1\nmain_process_ip: 10.0.0.1\nnum_processes: 2\n")
        program = self.program("echo $MASTER_ADDR\n")
        result = self.run_command("launch", "--num_machines", "1", "-n", "1", program)
        self.assertEqual(result.stdout, "127.0.0.1\n", result.stderr)

    def test_bad_files(self):
        for text, place in [
            ("num_processes: [1\n", "accelerate.yaml:2:1: "),
            ("num_processes: many\n", "accelerate.yaml:1:16: num_processes: 'many' "),
            ("use_cpu: true\nmixed_precision: fp17\n", "accelerate.yaml:2:18: mixed_precision: 'fp17' "),
        ]:
            with self.subTest(text):
                self.write("accelerate.yaml", text)
                result = self.run_command("launch", self.program("exit 0\n"))
                self.assertEqual(result.returncode, 2)
                self.assertIn(place, result.stderr)


class Config(LaunchTestCase):
    USER_FILE = "home/.config/accelerate-cpp/default_config.yaml"

    def test_default(self):
        result = self.run_command("config", "default", "--num_processes", "2", "--cpu", "--mixed_precision", "bf16")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(
            self.read(self.USER_FILE),
            "compute_environment: LOCAL_MACHINE\ndistributed_type: 'MULTI_CPU'\nnum_processes: 2\nnum_machines: 1\n"
            "machine_rank: 0\nmixed_precision: 'bf16'\nuse_cpu: true\ndebug: false\n",
        )
        program = self.program("[ $RANK = 1 ] && echo $ACCELERATE_MIXED_PRECISION; exit 0\n")
        result = self.run_command("launch", program)
        self.assertEqual(result.stdout, "[rank 1] bf16\n")
        self.assertIn(f"configuration: {self.path(self.USER_FILE)}\n", result.stderr)

    def test_default_does_not_overwrite(self):
        self.write("mine.yaml", "old\n")
        result = self.run_command("config", "default", "--config_file", "mine.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--force", result.stderr)
        self.assertEqual(self.read("mine.yaml"), "old\n")
        self.assertEqual(self.run_command("config", "--config_file", "mine.yaml", "default", "--force").returncode, 0)
        self.assertIn("num_processes: ", self.read("mine.yaml"))

    def test_unwritable(self):
        self.write("file", "")
        result = self.run_command("config", "default", "--config_file", "file/config.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertIn("cannot write file/config.yaml", result.stderr)

    def test_wizard_one_machine(self):
        answers = ["2", "", "no", "many", "2", "fp17", "bf16"]
        result = self.run_command("config", stdin="\n".join(answers) + "\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("'many' is not a whole number", result.stdout)
        self.assertIn("'fp17' is not one of", result.stdout)
        self.assertEqual(
            self.read(self.USER_FILE),
            "compute_environment: LOCAL_MACHINE\ndistributed_type: 'MULTI_CPU'\nnum_processes: 2\nnum_machines: 1\n"
            "machine_rank: 0\nmixed_precision: 'bf16'\nuse_cpu: true\ndebug: false\n",
        )

    def test_wizard_several_machines(self):
        answers = ["3", "2", "5", "1", "", "10.0.0.1", "", "yes", "3", "8", "0,1,2,3", ""]
        result = self.run_command("config", "--config_file", "new.yaml", stdin="\n".join(answers) + "\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(
            self.read("new.yaml"),
            "compute_environment: LOCAL_MACHINE\ndistributed_type: 'MULTI_GPU'\nnum_processes: 8\nnum_machines: 2\n"
            "machine_rank: 1\nmain_process_ip: '10.0.0.1'\nmain_process_port: 29500\ngpu_ids: '0,1,2,3'\n"
            "mixed_precision: 'no'\nuse_cpu: false\ndebug: true\n",
        )

    def test_wizard_asks_before_replacing(self):
        self.write("mine.yaml", "old\n")
        self.assertEqual(self.run_command("config", "--config_file", "mine.yaml", stdin="\n").returncode, 0)
        self.assertEqual(self.read("mine.yaml"), "old\n")

    def test_wizard_without_answers(self):
        result = self.run_command("config", stdin="1\n")
        self.assertEqual(result.returncode, 2)
        self.assertIn("answers ended early", result.stderr)
        self.assertFalse(os.path.exists(self.path(self.USER_FILE)))


class Env(LaunchTestCase):
    def test_markdown_and_json(self):
        self.write("accelerate.yaml", "num_processes: 2\n")
        result = self.run_command("env", ACCELERATE_USE_CPU="1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("- configuration: `./accelerate.yaml`\n", result.stdout)
        self.assertIn("  - num_processes: `2` (from ./accelerate.yaml)\n", result.stdout)
        report = json.loads(self.run_command("env", "--json", ACCELERATE_USE_CPU="1").stdout)
        self.assertEqual(report["configuration"]["num_processes"], {"value": "2", "from": "./accelerate.yaml"})
        self.assertEqual(report["configuration"]["use_cpu"], {"value": "true", "from": "ACCELERATE_USE_CPU"})
        self.assertEqual(report["variables"]["ACCELERATE_USE_CPU"], "1")
        self.assertEqual(report["cpus"], len(os.sched_getaffinity(0)))


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
        for zero, one, kind in [
            (waited + before + "kill -ABRT $$", "kill -ABRT $$", "failed"),  # it threw
            (waited + "kill -ABRT $$", "kill -SEGV $$", "failed"),
            ("sleep 5", "exit 3", "failed"),
            (waited + "kill -ABRT $$", "sleep 5", "hang"),
        ]:
            with self.subTest(one):
                migrated = f'[ "$WORLD_SIZE" = 2 ] || exit 0\nif [ $RANK = 1 ]; then {one}; else sleep 0.1; {zero}; fi\n'
                result = self.verify("--ranks", "2", "--json", "report.json", migrated=migrated)
                self.assertEqual(result.returncode, 4, result.stderr)
                first = json.loads(self.read("report.json"))["runs"][1]["first_difference"]
                self.assertEqual((first["kind"], first.get("rank", 1)), (kind, 1), first)
                self.assertTrue("rank" in first or kind == "hang", first)

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
