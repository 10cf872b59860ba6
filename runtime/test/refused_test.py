#!/usr/bin/env python3
"""refused_test.py COMPILER [FLAG...]: what doesn't compile with <accelerate/accelerate.h>, and what the compiler says then.

One unit has all of the calls that are wrong, each in a line and with a type of its own. For each there has to be our message, the
user's line and the type; and no other error, which would be one that tells nothing.
"""

import os
import re
import subprocess
import sys
import tempfile

HEAD = """\
#include <torch/torch.h>
#include <accelerate/accelerate.h>
#include <string>
#include <vector>
struct Rows : torch::data::Dataset<Rows> {
  torch::data::Example<> get(size_t) override { return {}; }
  torch::optional<size_t> size() const override { return 1; }
};
struct Net { torch::Tensor forward(torch::Tensor x) { return x; } };
enum class Color { red };
int main() {
  accelerate::Accelerator accelerator;
  torch::nn::Linear model(1, 1);
  torch::Tensor x;
"""

PREPARE = "prepare() takes modules, module holders, AnyModule, leaf tensors, optimizers, torch::data loaders and " \
          "learning-rate schedulers"

# The call, what is said of it, the type as it's called there (None: there is none).
REFUSED = [
    ("accelerator.prepare(42);", PREPARE, "int"),
    ("accelerator.prepare(model, 0.1);", PREPARE, "double"),
    ('accelerator.prepare(std::string("model"));', PREPARE, "basic_string"),
    ("std::vector<long> numbers; accelerator.prepare(numbers);", PREPARE, "long"),
    ("Rows rows; accelerator.prepare(rows);", PREPARE, "Rows"),
    ("Net net; accelerator.prepare(&net);", PREPARE, "Net"),
    ("accelerator.prepare({true}, Color::red);", PREPARE, "Color"),
    ("accelerator.prepare();", "prepare() takes at least one argument", None),
    ("accelerator.reduce_();", "reduce_() takes at least one argument", None),
    ("std::string text; accelerator.max(text);", "max() and min() take tensors and numbers", "basic_string"),
    ("accelerator.reduce(x, text);", "reduce() takes tensors, numbers, and std::array, std::vector", "basic_string"),
    ("accelerator.mine(net);", "mine() and sum() take tensors and numbers", "Net"),
]


def compile_unit(compiler, lines):
    """Exit status and messages for a program of these lines, and where each stands."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "unit.cpp")
        with open(path, "w", encoding="utf-8") as f:
            f.write(HEAD + "".join(line + "\n" for line in lines) + "}\n")
        result = subprocess.run(compiler + ["-fsyntax-only", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env=dict(os.environ, LC_ALL="C"))
    first = HEAD.count("\n") + 1
    return result.returncode, result.stdout, [first + i for i in range(len(lines))]


def main():
    compiler = sys.argv[1:]
    problems = []
    status, output, places = compile_unit(compiler, [call for call, _, _ in REFUSED])
    errors = re.findall(r"^\S*: error: (.*)$", output, re.MULTILINE)
    for error in errors:
        if "accelerate: " not in error:
            problems.append("an error that isn't ours: " + error)
    for (call, message, name), line in zip(REFUSED, places):
        # One error: its contexts, its line and what follows it.
        about = [e for e in re.split(r"(?=^In file included from|^\S*: In )", output, flags=re.MULTILINE)
                 if "unit.cpp:%d:" % line in e]
        if not any("accelerate: " + message in e for e in about):
            problems.append("nothing like '%s' is said of line %d: %s" % (message, line, call))
        elif name and not any(re.search(r"= (const )?(\S*::)?(\w*<)?%s\b" % name, e) for e in about):
            problems.append("the type %s isn't named for line %d: %s" % (name, line, call))
    if status == 0:
        problems.append("it compiles")
    status, right, _ = compile_unit(compiler, ["accelerator.prepare(model);", "accelerator.reduce_(x);"])
    if status != 0:
        problems.append("what is right doesn't compile either:\n" + right)
    for problem in problems:
        print("FAIL:", problem)
    if problems:
        print(output)
    print("%d calls, %d errors" % (len(REFUSED), len(errors)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
