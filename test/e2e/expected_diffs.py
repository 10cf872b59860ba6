#!/usr/bin/env python3
"""Compares what projects become with the `expected.diff` that lies in each folder.

  expected_diffs.py --tool T [--update] [FOLDER ...]

Configures a copy of each folder (all that examples.json tells of and that have such a file, if none is named), migrates
it, and compares the diff; nothing is built or run. `--update` writes the files anew (`scripts/expected-diffs` does), for
all folders of whose programs one migrates. Exit code 0, or 1 if a diff isn't as expected; then it is shown how it differs.
"""
import argparse
import difflib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DIFF = "expected.diff"


def folders(examples):
    """Where the folders lie that examples.json tells of."""
    return [next(parent / name for parent in (ROOT / "examples", ROOT / "test/programs") if (parent / name).is_dir())
            for name in examples]


def migration(tool, folder, options, work):
    """What the tool prints for a copy of the folder, as bytes."""
    project = work / folder.name
    shutil.copytree(folder, project, ignore=shutil.ignore_patterns("build*", ".cache", "*.pt", DIFF))
    env = dict(os.environ, GIT_CEILING_DIRECTORIES=str(work))
    configured = subprocess.run(["cmake", "-S", project, "-B", project / "build", "-G", "Ninja",
                                 "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options],
                                env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    if configured.returncode != 0:
        sys.exit(f"{folder.name}: it can't be configured\n{configured.stdout}")
    done = subprocess.run([tool, "--quiet", "-p", "build"], cwd=project, env=env, capture_output=True, timeout=600)
    if done.returncode > 1:
        sys.exit(f"{folder.name}: exit code {done.returncode} of the tool\n{done.stderr.decode(errors='replace')}")
    return done.stdout


def lines(diff):
    return diff.decode(errors="replace").splitlines(keepends=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=lambda text: pathlib.Path(text).resolve(), required=True, help="accelerate-migrate")
    parser.add_argument("--update", action="store_true", help=f"write what comes out to {DIFF}")
    parser.add_argument("folder", nargs="*", type=lambda text: pathlib.Path(text).resolve())
    options = parser.parse_args()
    examples = json.loads((HERE / "examples.json").read_text())
    chosen = options.folder or [folder for folder in folders(examples) if options.update or (folder / DIFF).exists()]
    other = 0
    with tempfile.TemporaryDirectory(prefix="expected-diffs-") as work:
        for folder in chosen:
            kept = folder / DIFF
            got = migration(options.tool, folder, examples[folder.name].get("cmake", []), pathlib.Path(work).resolve())
            expected = kept.read_bytes() if kept.exists() else b""
            same = got == expected
            print(f"{folder.name:<26} {'as expected' if same else 'written' if options.update else 'DIFFERS'}", flush=True)
            if same:
                continue
            if options.update:
                kept.write_bytes(got) if got else kept.unlink(missing_ok=True)
                continue
            other += 1
            sys.stdout.writelines(difflib.unified_diff(lines(expected), lines(got), f"{folder.name}/{DIFF}", "this migration"))
    if other:
        print("if that is right: scripts/expected-diffs, and look at what `git diff` says")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
