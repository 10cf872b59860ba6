#!/usr/bin/env python3
"""What LibTorch's C++ frontend offers, against rules/operations.yaml: what isn't in the table must be in uncovered.txt.

Read from LibTorch's headers: the methods of at::Tensor, the functions of at::, torch::nn::functional, torch::special and
torch::fft, and the modules of torch::nn. uncovered.txt has a reason for each that the table leaves out, by name or by pattern;
in a program they are unknown, and a finding names them. A name that is in neither is an error, and so is a line of the file
that says nothing any more.
"""
import argparse
import glob
import os
import re
import sys

import yaml


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def offered(include):
    """Names as the table has them: without the underscore of in-place forms."""
    api = os.path.join(include, "torch/csrc/api/include/torch")
    names = set(re.findall(r"^  (?:const )?[\w:<>, ]+?[&*]?\s(\w+)\([^;{]*\) const(?: &&| &)?(?:;| \{)",
                           read(os.path.join(include, "ATen/core/TensorBody.h")), re.M))
    for path in glob.glob(os.path.join(include, "ATen/ops/*.h")):
        stem = os.path.basename(path)[:-2]
        if not re.search(r"_(native|ops|dispatch)$", stem):
            names |= set(re.findall(r"^inline [^\n(]*? (\w+)\(", read(path), re.M))
    for path in glob.glob(os.path.join(api, "nn/functional/*.h")):
        names |= set(re.findall(r"^inline [^\n(]*? (\w+)\(", read(path), re.M))
    for prefix in ("special", "fft"):
        names |= {prefix + "_" + n for n in
                  re.findall(r"^inline [^\n(]*?\s(\w+)\(", read(os.path.join(api, prefix + ".h")), re.M)}
    for path in glob.glob(os.path.join(api, "nn/modules/**/*.h"), recursive=True):
        names |= set(re.findall(r"^TORCH_MODULE(?:_IMPL)?\((\w+)", read(path), re.M))
    if len(names) < 2000:
        sys.exit("LibTorch's headers in '%s' hold %d names: they are read wrongly" % (include, len(names)))
    return {n[:-1] if n.endswith("_") and not n.startswith("_") else n for n in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", required=True, help="LibTorch's include folder")
    parser.add_argument("--table", required=True)
    options = parser.parse_args()
    with open(options.table, encoding="utf-8") as f:
        table = yaml.load(f, Loader=yaml.BaseLoader)
    known = {name.split("(")[0].split("::")[-1] for names in table.values() for name in names}
    reasons, reason = {}, None
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "uncovered.txt")
    for line in read(path).splitlines():
        if line.startswith("# "):
            reason = line[2:]
        for pattern in ([] if line.startswith("#") else line.split()):
            reasons[pattern] = reason
    names = offered(options.include)
    open_ = sorted(names - known)
    used, status = set(), 0
    for name in open_:
        matching = [p for p in reasons if re.fullmatch(p, name)]
        used.update(matching)
        if not matching:
            status = 1
            print("neither in the table nor in uncovered.txt: " + name)
    for pattern in sorted(set(reasons) - used):
        status = 1
        print("uncovered.txt: '%s' names nothing that is left out" % pattern)
    print("%d operations and modules offered, %d in the table, %d left out with a reason" %
          (len(names), len(names & known), len(open_)))
    return status


if __name__ == "__main__":
    sys.exit(main())
