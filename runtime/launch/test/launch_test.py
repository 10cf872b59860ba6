"""The command line of accelerate-cpp, its configuration, and what each rank gets."""

import json
import os
import re
import socket
import unittest

from launcher import LaunchTestCase


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

    def test_flags_are_documented(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../README.md")) as file:
            text = file.read()
        table = re.findall(r"^\| (`-.*?`) \| (?:`(\w+)`)? ?\| (?:`(\w+)`)? ?\|", text, re.MULTILINE)
        documented = {re.findall(r"--\w+", flags)[0]: (key, variable) for flags, key, variable in table}
        flags = {name: set(re.findall(r"^  (?:-\w, )?(--\w+)", self.run_command(*name.split(), "--help").stdout, re.MULTILINE))
                 for name in ("launch", "config default", "test", "env")}
        self.assertEqual(set(documented), flags["launch"] - {"--help"})
        with_key = {flag for flag, (key, _) in documented.items() if key}
        self.assertEqual(flags["config default"], {"--help", "--config_file", "--force", *with_key})
        self.assertEqual(
            flags["test"], {"--help", "--config_file", "--no_config", "--timeout", "--checkpoint_dir", *with_key}
        )
        self.assertEqual(flags["env"], {"--help", "--config_file", "--json"})
        # The variables and the keys are what they say.
        values = {"num_processes": "2", "num_machines": "1", "machine_rank": "0", "main_process_ip": "10.0.0.1",
                  "main_process_port": "7", "gpu_ids": "1", "mixed_precision": "bf16", "use_cpu": "true", "debug": "true"}
        self.assertEqual({key for key, _ in documented.values() if key}, set(values))
        variables = {variable: values[key] for key, variable in documented.values() if key}
        read = json.loads(self.run_command("env", "--json", **variables).stdout)["configuration"]
        self.assertEqual({key: entry["value"] for key, entry in read.items()}, values)
        for key, variable in documented.values():
            self.assertTrue(not key or read[key]["from"] == variable, key)
        self.write("accelerate.yaml", "".join(f"{key}: {value}\n" for key, value in values.items()))
        read = json.loads(self.run_command("env", "--json").stdout)
        self.assertEqual(read["warnings"], [])
        self.assertEqual({key: entry["value"] for key, entry in read["configuration"].items()}, values)

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

    def test_visible_devices_are_those_that_count(self):
        program = self.program("echo $CUDA_VISIBLE_DEVICES\n")
        for arguments in (["launch", program], ["launch", "--gpu_ids", "all", program]):
            result = self.run_command(*arguments, CUDA_VISIBLE_DEVICES="5,6")
            self.assertIn("num_processes: 2 (2 CUDA devices; ", result.stderr)
            self.assertIn("\n5,6\n", "\n" + result.stdout)
        report = json.loads(self.run_command("env", "--json", CUDA_VISIBLE_DEVICES="5,6").stdout)
        self.assertEqual(report["cuda devices"], 2)
        self.assertEqual(self.run_command("config", "default", CUDA_VISIBLE_DEVICES="5,6").returncode, 0)
        self.assertIn("num_processes: 2\n", self.read(Config.USER_FILE))
        self.assertIn("use_cpu: false\n", self.read(Config.USER_FILE))

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

    def test_default_refuses_what_launch_refuses(self):
        several = ["--num_machines", "2", "--num_processes", "4"]
        address = ["--main_process_ip", "10.0.0.1"]
        for flags, message in [
            (several, "several machines need --main_process_ip"),
            ([*several, *address], "several machines need --machine_rank"),
            ([*several, *address, "--machine_rank", "2"], "the machines are numbered 0 to 1"),
            ([*several, *address, "--machine_rank", "0", "--main_process_port", "0"], "must agree on a port"),
            (["--num_machines", "2", "--num_processes", "3", "--machine_rank", "0", *address], "shared evenly"),
            (["--machine_rank", "1"], "machine_rank is 1"),
        ]:
            with self.subTest(flags):
                launch = self.run_command("launch", *flags, self.program("exit 0\n"))
                result = self.run_command("config", "default", *flags)
                self.assertEqual((launch.returncode, result.returncode), (2, 2), result.stderr)
                self.assertIn(message, result.stderr)
                self.assertIn(message, launch.stderr)
                self.assertFalse(os.path.exists(self.path(self.USER_FILE)))
        flags = [*several, *address, "--machine_rank", "1"]
        self.assertEqual(self.run_command("config", "default", *flags).returncode, 0)
        self.assertIn("machine_rank: 1\n", self.read(self.USER_FILE))

    def test_the_file_in_force_is_named(self):
        user = self.path(self.USER_FILE)
        self.assertEqual(
            self.run_command("config", "default", "--cpu", "--config_file", "mine.yaml").stdout,
            "Wrote mine.yaml\nIn force: no file; launch reads mine.yaml if told to: --config_file mine.yaml\n",
        )
        self.assertEqual(self.run_command("config", "default", "--cpu").stdout, f"Wrote {user}\nIn force: {user}\n")
        self.assertIn(f"configuration: {user}\n", self.run_command("launch", self.program("exit 0\n")).stderr)
        self.assertIn(f"- configuration: `{user}`\n", self.run_command("env").stdout)
        asked = self.run_command("config", "--config_file", "accelerate.yaml", stdin="1" + 9 * "\n")
        self.assertTrue(asked.stdout.endswith("Wrote accelerate.yaml\nIn force: ./accelerate.yaml\n"), asked.stdout)
        self.assertEqual(
            self.run_command("config", "default", "--cpu", "--force").stdout,
            f"Wrote {user}\nIn force: ./accelerate.yaml, which comes before; launch reads {user} if told to: "
            f"--config_file {user}\n",
        )

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
        self.assertNotIn("error", report)

    def test_all_but_what_is_broken(self):
        self.write("accelerate.yaml", "num_processes: [2\n")
        message = r"\./accelerate\.yaml:2:1: "
        result = self.run_command("env", ACCELERATE_USE_CPU="1")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, rf"^\[accelerate-cpp\] error: {message}")
        for text in ("- operating system: ", "- configuration: `./accelerate.yaml`\n",
                     "  - use_cpu: `true` (from ACCELERATE_USE_CPU)\n"):
            self.assertIn(text, result.stdout)
        self.assertRegex(result.stdout, f"\n- error: {message}")
        result = self.run_command("env", "--json", ACCELERATE_USE_CPU="1")
        self.assertEqual(result.returncode, 2)
        report = json.loads(result.stdout)
        self.assertRegex(report["error"], message)
        self.assertEqual(report["configuration file"], "./accelerate.yaml")
        # A broken variable beside it.
        result = self.run_command("env", ACCELERATE_NUM_PROCESSES="many")
        self.assertEqual(result.returncode, 2)
        self.assertIn("- error: environment variable ACCELERATE_NUM_PROCESSES: 'many' ", result.stdout)
        self.assertIn("- configuration: `./accelerate.yaml`\n", result.stdout)


if __name__ == "__main__":
    unittest.main()
