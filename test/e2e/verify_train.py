#!/usr/bin/env python3
"""Runs `accelerate-migrate --verify=train` on the project in training/, as its user would.

  verify_train.py --tool T --launcher L --rules DIR --work DIR

A right migration is printed; one that is wrong on purpose is refused, with --in-place as well; and where the original
can't be run, nothing is claimed. The user's files are never touched, and nothing stays behind but what is to be seen.
Exit code 0, or 1 with what was expected.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def expect(condition, what, done=None):
    if not condition:
        sys.exit(f"expected: {what}" + (f"\n{done.stdout}{done.stderr}exit code {done.returncode}" if done else ""))


class Project:
    def __init__(self, options):
        self.options = options
        self.folder = options.work / "project"
        self.running = options.work / "running"
        self.temporary = options.work / "temporary"
        shutil.rmtree(options.work, ignore_errors=True)
        shutil.copytree(HERE / "training", self.folder)
        (self.running / "settings").mkdir(parents=True)
        (self.running / "settings/epochs.txt").write_text("2\n")
        (self.running / "fit.pt").write_text("of an earlier run\n")
        self.temporary.mkdir()
        self.env = dict(os.environ, OMP_NUM_THREADS="1", CCACHE_BASEDIR=str(options.work), TMPDIR=str(self.temporary),
                        GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull,
                        PATH=f"{options.launcher.parent}:{os.environ['PATH']}")
        git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
        (self.folder / ".gitignore").write_text("/build/\n")
        for command in (["git", "init", "-q"], ["git", "add", "-A"], [*git, "commit", "-q", "-m", "original"],
                        ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=", "-DROWS=16",
                         "-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
                         "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]):
            done = self.run(command, self.folder)
            expect(done.returncode == 0, "a project", done)
        self.before = self.files()

    def run(self, command, cwd):
        return subprocess.run([str(word) for word in command], cwd=cwd, env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=600)

    def migrate(self, *flags, cwd=None):
        done = self.run([self.options.tool, "-p", self.folder / "build", *flags], cwd or self.running)
        expect(self.files() == self.before, "the same files as before", done)
        return done

    def files(self):
        return {path: path.read_bytes() for root in (self.folder, self.running) for path in sorted(root.rglob("*"))
                if path.is_file() and ".git" not in path.parts}


def document(done):
    """What `--verify-flags=--json -` has printed."""
    return json.loads(done.stderr[done.stderr.index("\n{\n"):done.stderr.index("\n}\n") + 3])


def right(project):
    done = project.migrate("--verify=train", "--verify-args=elsewhere", "--verify-args=train:'settings'",
                           "--verify-flags=--json -")
    expect(done.returncode == 1 and "train: the migrated program trains as the original does" in done.stderr,
           "a verified diff and exit code 1", done)
    expect(document(done)["same"], "the user's document", done)
    expect(done.stdout == project.migrate().stdout and "accelerator.backward(loss)" in done.stdout,
           "the diff that is printed without --verify", done)
    expect(not any(project.temporary.iterdir()), "no temporary file", done)


def wrong(project):
    rules = project.options.work / "rules"
    shutil.copytree(project.options.rules, rules)
    text = (rules / "backward.yaml").read_text()
    spoilt = text.replace(".backward({loss}{comma}{more})", ".backward({loss}{more}, accelerate::Reduction::Sum)")
    expect(spoilt != text, "a template to spoil in backward.yaml")
    (rules / "backward.yaml").write_text(spoilt)
    # It is a program like any other as far as can be told without running it.
    done = project.migrate("--rules-dir", rules)
    expect(done.returncode == 1 and "train: migrated\n" in done.stderr, "a wrong migration", done)
    done = project.migrate("--rules-dir", rules, "--in-place", "--verify=train", "--verify-flags=--ranks 2 --json -",
                           "--verify-cwd", project.running, cwd=project.folder)
    expect(done.returncode == 4 and done.stdout == "", "no diff and exit code 4", done)
    line = 1 + next(i for i, text in enumerate((project.folder / "source/train.cpp").read_text().splitlines())
                    if "loss.backward()" in text)
    for text in ("times-ranks: ", "rules: AM0401 backward, ",
                 "what rules that concern `times-ranks` have edited in train, or found in it:\n",
                 f"\n  source/train.cpp:{line}: edited [AM0401 backward]\n", "the migrated `train` doesn't train as the original does [AM0909 training-differs]",
                 "train: refused (AM0909 training-differs)"):
        expect(text in done.stderr, text, done)
    expect(not document(done)["same"], "the user's document", done)
    kept = re.search("is kept in '(.*)'", done.stderr)
    expect(kept and os.access(pathlib.Path(kept[1]) / "migrated/build/programs/fit", os.X_OK), "the builds", done)


def noted(project):
    """What the notes say shows on ranks, and the report points to them."""
    source = project.folder / "source/train.cpp"
    original = source.read_text()
    text = original.replace("Linear model(3, 1);", "Linear model(3, 1);\n  torch::nn::Dropout drop(0.5);")
    text = text.replace("model(batch.data.narrow(1, 0, 3))", "model(drop(batch.data.narrow(1, 0, 3)))")
    expect(text.count("drop(") == 2, "a program to change")
    source.write_text(text)
    project.before = project.files()
    done = project.migrate("--verify=train", "--verify-args=settings", "--verify-flags=--ranks 2")
    expect(done.returncode == 4, "exit code 4", done)
    line = 1 + next(i for i, text in enumerate(text.splitlines()) if "model(drop(" in text)
    for text in ("other-rows-or-draws: ", "what rules that concern `other-rows-or-draws` have edited in train, or found in it:\n",
                 f"\n  source/train.cpp:{line}: this ", "; ranks draw other numbers than one process [AM0712 dropout]\n",
                 ": edited [AM0303 training-loader]\n", "which may be what its notes say"):
        expect(text in done.stderr, text, done)
    source.write_text(original)
    project.before = project.files()


def unknown(project):
    nowhere = project.options.work / "nowhere"
    nowhere.mkdir()
    done = project.migrate("--in-place", "--verify=train", "--verify-args=a:b 'c d'", cwd=nowhere)
    expect(done.returncode == 2 and done.stdout == "", "no diff and exit code 2", done)
    for text in ("`train` can't be compared: accelerate-cpp verify: exit code 3", "no a:b/epochs.txt here",
                 "nothing was changed"):
        expect(text in done.stderr, text, done)


def main():
    path = lambda text: pathlib.Path(text).resolve()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--tool", "--launcher", "--rules", "--work"):
        parser.add_argument(name, type=path, required=True)
    project = Project(parser.parse_args())
    for check in (right, wrong, noted, unknown):
        check(project)
        print(f"{check.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
