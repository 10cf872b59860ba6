#!/usr/bin/env python3
"""What makes the tool quick must change nothing but the time.

Runs every program of the lit tests (flags mode, `--torch-flags`), and the programs whose folders are named with --program,
twice: as users do, and as a plain parse (--no-prefilter --no-cache --no-pch --no-skip --no-isolate). Edits, findings,
messages and exit status must be equal. A third run, from the caches that the first one filled, must be equal as well.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import tempfile

PLAIN = ["--no-prefilter", "--no-cache", "--no-pch", "--no-skip", "--no-isolate"]


def sections(path):
    """The files of a split-file test, by name."""
    found, name = {}, None
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            match = re.match(r"(?://|#)?---\s+(\S+)\s*$", line)
            if match:
                name = match.group(1)
                found[name] = []
            elif name:
                found[name].append(line)
    return {name: "".join(lines) for name, lines in found.items()}


def run(tool, extra, sources, flags, folder, cache):
    env = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(folder))
    if cache:
        env["XDG_CACHE_HOME"] = cache
    done = subprocess.run([tool, *extra, *sources, "--", *flags], cwd=folder, env=env, capture_output=True, timeout=900)
    return done.returncode, done.stdout, done.stderr


def compare(tool, name, sources, flags, folder, cache, extra=()):
    quick = run(tool, list(extra), sources, flags, folder, cache)
    plain = run(tool, [*extra, *PLAIN], sources, flags, folder, cache)
    again = run(tool, list(extra), sources, flags, folder, cache)
    # A program without training isn't parsed, so what else is wrong with it isn't seen; and a plain parse may find more to
    # say about one that doesn't compile.
    if plain[0] == 3 and quick[0] in (0, 3):
        return None, 3
    ok = quick[0] in (0, 1, 3, 4)
    if not ok:
        print(f"{name}: exit status {quick[0]}: {quick[2].decode(errors='replace')}")
    for what, other in ("a plain parse", plain), ("a run from the cache", again):
        if other != quick:
            ok = False
            print(f"{name}: {what} differs: exit status {quick[0]} and {other[0]}")
            for label, a, b in ("stdout", quick[1], other[1]), ("stderr", quick[2], other[2]):
                if a != b:
                    print(f"--- {label}, quick\n{a.decode(errors='replace')}--- {label}, {what}\n"
                          f"{b.decode(errors='replace')}")
    return ok, quick[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--lit", help="folder of the lit tests")
    parser.add_argument("--every", type=int, default=1, help="takes one of so many lit tests")
    parser.add_argument("--torch-flags", default="", help="flags for the lit tests' programs")
    parser.add_argument("--program", action="append", default=[], help="folder of another program")
    parser.add_argument("--program-flags", default="", help="its flags")
    options = parser.parse_args()

    passed = failed = edits = 0
    with tempfile.TemporaryDirectory(prefix="equivalence-") as work:
        work = os.path.realpath(work)
        cases = []
        tests = sorted((root, file) for root, _, files in os.walk(options.lit) for file in files
                       if file.endswith(".test") and "Inputs" not in root) if options.lit else []
        for root, file in tests[::options.every]:
            for name, text in sections(os.path.join(root, file)).items():
                if not name.endswith(".cpp") and not name.endswith(".h"):
                    continue
                path = os.path.join(work, file, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
                    f.write(text)
                # A crash on purpose and an expectation are no inputs.
                if name.endswith(".cpp") and "__debug" not in text and "expected" not in name:
                    cases.append((f"{file}: {name}", path))

        def one(case):
            name, path = case
            folder, base = os.path.split(path)
            return compare(options.tool, name, [base], shlex.split(options.torch_flags), folder,
                           os.path.join(work, "cache"), ["--verify=none"])

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(one, cases))
        for ok, code in results:
            if ok is not None:
                passed, failed, edits = passed + ok, failed + (not ok), edits + (code == 1)
        for program in options.program:
            # With LibTorch the precompiled header of the user's cache is used: it's what is compared.
            folder = os.path.realpath(program)
            sources = sorted(name for name in os.listdir(folder) if name.endswith(".cpp"))
            ok, code = compare(options.tool, program, sources, shlex.split(options.program_flags), folder, None,
                               ["--no-verify"])
            if ok is None:
                ok = False
                print(f"{program} doesn't parse")
            passed, failed, edits = passed + ok, failed + (not ok), edits + (code == 1)
    if edits == 0:
        print("no program was migrated: nothing was compared")
        failed += 1
    print(f"{passed} passed, {failed} failed ({edits} with edits or findings)")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
