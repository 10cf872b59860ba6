#!/usr/bin/env python3
"""headers_test.py INCLUDE TORCH COMPILER [FLAG...]: what a user's unit gets with <accelerate/accelerate.h>.

It lists the files of a unit (-M). Behind the include there may be our headers in INCLUDE, LibTorch's below TORCH that have
nothing to do with c10d, Gloo or NCCL, and the standard library's; and all of our headers, or one would go unchecked.
"""

import os
import re
import subprocess
import sys
import tempfile

COMMUNICATION = re.compile(r"/distributed/|/c10d/|gloo|nccl", re.IGNORECASE)


def included(compiler, text):
    """The files that the compiler reads for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "unit.cpp")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        rule = subprocess.run(compiler + ["-M", path], check=True, stdout=subprocess.PIPE, text=True).stdout
        files = rule.partition(":")[2].replace("\\\n", " ").split()
        return {os.path.realpath(f) for f in files if f != path}


def strangers(files, ours, torch, standard):
    """Those that a user's unit shouldn't get, with the reason."""
    found = []
    for path in sorted(files):
        if path.startswith(ours + os.sep):
            continue
        if not path.startswith(torch + os.sep):
            if path not in standard:
                found.append(path + ": neither ours nor LibTorch's nor the standard library's")
        elif COMMUNICATION.search(path[len(torch) :]):
            found.append(path + ": of communication")
    return found


def main():
    ours, torch = (os.path.realpath(p) for p in sys.argv[1:3])
    compiler = sys.argv[3:]
    # What <torch/torch.h> brings is there anyway; bits/stdc++.h is libstdc++'s list of all standard headers.
    standard = included(compiler, "#include <bits/stdc++.h>\n")
    torchs_own = included(compiler, "#include <torch/torch.h>\n")
    with_ours = included(compiler, "#include <torch/torch.h>\n#include <accelerate/accelerate.h>\n")

    probe = included(compiler, "#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>\n")
    if not strangers(probe - torchs_own, ours, torch, standard):
        print("FAIL: c10d's own header isn't noticed, so this test shows nothing")
        return 1

    problems = strangers(with_ours - torchs_own, ours, torch, standard)
    for folder, _, names in os.walk(ours):
        problems += [
            "%s: not included by <accelerate/accelerate.h>" % os.path.join(folder, name)
            for name in names
            if os.path.join(folder, name) not in with_ours
        ]
    for problem in problems:
        print("FAIL:", problem)
    more = with_ours - torchs_own
    print("%d files more than with <torch/torch.h> (%d)" % (len(more), len(torchs_own)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
