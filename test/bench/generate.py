#!/usr/bin/env python3
"""Writes a project of 40 units, such as a team's repository is: several programs, libraries that they share, and much
that has nothing to do with training.

  generate.py FOLDER --include DIR...

Five fields (vision, tabular, ...) have a model each, all called `Net`, in a library of its own; a program that trains
it (`train.cpp` and `step.cpp`, a function `learn` in each) and one that uses it (`predict.cpp`). `common` and `base`
are libraries for all of them; `tools` are small programs with LibTorch and without.

  10 units train, 20 use LibTorch otherwise, 10 are plain C++

The code is meant to compile, and all of it migrates without a refusal. FOLDER gets the sources, CMakeLists.txt, and
`build/compile_commands.json` as CMake would write it with LibTorch's headers in the DIRs.
"""

import argparse
import json
import os

from project_text import (
    BASE,
    COMMON,
    FIELDS,
    NET_CPP,
    NET_H,
    PLAIN_TOOLS,
    PREDICT_CPP,
    STEP_CPP,
    STEP_H,
    TORCH_TOOLS,
    TRAIN_CPP,
)


def generate(folder, includes):
    """Writes the project; the compile commands, each with what its unit does: `trains`, `torch` or `plain`."""
    files, units = {}, []  # (source, target, kind)

    def add(path, text, target=None, kind=None):
        files[path] = text
        if target:
            units.append((path, target, kind))

    top = [
        "cmake_minimum_required(VERSION 3.18)",
        "project(models CXX)",
        "",
        "set(CMAKE_CXX_STANDARD 17)",
        "find_package(Torch REQUIRED)",
        "include_directories(${CMAKE_SOURCE_DIR})",
        "",
        "add_subdirectory(base)",
        "add_subdirectory(common)",
        "add_subdirectory(tools)",
    ]
    for name, (header, source) in BASE.items():
        add("base/%s.h" % name, "#pragma once\n" + header)
        add("base/%s.cpp" % name, '#include "base/%s.h"\n\n' % name + source, "base", "plain")
    add("base/CMakeLists.txt", "add_library(base STATIC %s)\n" % " ".join(n + ".cpp" for n in BASE))
    for name, text in COMMON.items():
        add("common/" + name, text, *(("common", "torch") if name.endswith(".cpp") else ()))
    add(
        "common/CMakeLists.txt",
        "add_library(common STATIC %s)\ntarget_link_libraries(common PUBLIC base ${TORCH_LIBRARIES})\n"
        % " ".join(n for n in COMMON if n.endswith(".cpp")),
    )

    tools = ""
    for name, body in TORCH_TOOLS.items():
        add(
            "tools/%s.cpp" % name,
            '#include <torch/script.h>\n#include <torch/torch.h>\n\n#include <iostream>\n#include <string>\n#include <vector>\n\n'
            '#include "common/blocks.h"\n#include "common/shape.h"\n#include "common/summary.h"\n\n'
            'int main(int argc, char** argv) {\n  const std::string path = argc > 1 ? argv[1] : "model.pt";\n'
            + body
            + "}\n",
            "tool_" + name,
            "torch",
        )
        tools += "add_executable(tool_%s %s.cpp)\ntarget_link_libraries(tool_%s common)\n" % (name, name, name)
    for name, body in PLAIN_TOOLS.items():
        add(
            "tools/%s.cpp" % name,
            '#include <algorithm>\n#include <iostream>\n#include <string>\n\n#include "base/csv.h"\n\n'
            'int main(int argc, char** argv) {\n  const std::string path = argc > 1 ? argv[1] : "data.csv";\n'
            + body
            + "}\n",
            "tool_" + name,
            "plain",
        )
        tools += "add_executable(tool_%s %s.cpp)\ntarget_link_libraries(tool_%s base)\n" % (name, name, name)
    add("tools/CMakeLists.txt", tools)

    for field, features, classes, optimizer, epochs in FIELDS:
        loss = "torch::nn::functional::cross_entropy(output, target)" if classes else "torch::mse_loss(output, target)"
        values = dict(
            field=field,
            features=features,
            classes=classes,
            outputs=classes or 1,
            optimizer=optimizer,
            epochs=epochs,
            loss=loss,
            loss_sum=(
                "torch::cross_entropy_loss(output, target, {}, torch::Reduction::Sum)"
                if classes
                else "torch::mse_loss(output, target, torch::Reduction::Sum)"
            ),
            more_sums=", correct = 0" if classes else "",
            more_counts="\n      correct += output.argmax(1).eq(target).sum().item<int64_t>();" if classes else "",
            more_format=", accuracy %.4f" if classes else "",
            more_values=", static_cast<double>(correct) / rows" if classes else "",
        )
        for name, text, target, kind in (
            ("net.h", NET_H, None, None),
            ("net.cpp", NET_CPP, field + "_net", "torch"),
            ("step.h", STEP_H, None, None),
            ("step.cpp", STEP_CPP, field + "_train", "trains"),
            ("train.cpp", TRAIN_CPP, field + "_train", "trains"),
            ("predict.cpp", PREDICT_CPP, field + "_predict", "torch"),
        ):
            add("%s/%s" % (field, name), text.format(**values), target, kind)
        # All the programs are called `train` and `predict` where they are installed.
        add(
            field + "/CMakeLists.txt",
            """add_library({0}_net STATIC net.cpp)
target_link_libraries({0}_net PUBLIC common)
add_executable({0}_train train.cpp step.cpp)
target_link_libraries({0}_train PRIVATE {0}_net)
set_target_properties({0}_train PROPERTIES OUTPUT_NAME train)
add_executable({0}_predict predict.cpp)
target_link_libraries({0}_predict PRIVATE {0}_net)
set_target_properties({0}_predict PROPERTIES OUTPUT_NAME predict)
""".format(field),
        )
        top.append("add_subdirectory(%s)" % field)
    files["CMakeLists.txt"] = "\n".join(top) + "\n"

    for path, text in files.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    root = os.path.realpath(folder)
    build = os.path.join(root, "build")
    os.makedirs(build, exist_ok=True)
    commands = []
    for source, target, kind in units:
        where, name = os.path.split(source)
        flags = ["-I" + root] + ([] if kind == "plain" else [f for d in includes for f in ("-isystem", d)])
        output = "%s/CMakeFiles/%s.dir/%s.o" % (where, target, name)
        commands.append(
            {
                "directory": build,
                "file": os.path.join(root, source),
                "output": output,
                "arguments": ["/usr/bin/c++"]
                + flags
                + ["-std=gnu++17", "-o", output, "-c", os.path.join(root, source)],
            }
        )
    with open(os.path.join(build, "compile_commands.json"), "w", encoding="utf-8") as f:
        json.dump(commands, f, indent=1)
    with open(os.path.join(build, "CMakeCache.txt"), "w", encoding="utf-8") as f:
        f.write("CMAKE_HOME_DIRECTORY:INTERNAL=%s\n" % root)
    return [dict(command, kind=kind) for command, (_, _, kind) in zip(commands, units)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--include", nargs="+", default=[], metavar="DIR", help="folders of LibTorch's headers")
    a = p.parse_args()
    units = generate(a.folder, a.include)
    print("%d units in %s" % (len(units), a.folder))


if __name__ == "__main__":
    main()
