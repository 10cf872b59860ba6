"""The inputs that mutate.py mutates: what they are made of, and what is run on them."""

import glob
import json
import os
import re

import mutations

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MOCK = os.path.join(ROOT, "test", "lit", "Inputs", "torch")


def load_seeds():
    """The sections of test/lit's cases: name of the case -> {path: bytes}."""
    seeds = {}
    for folder, _, files in sorted(os.walk(os.path.join(ROOT, "test", "lit"))):
        for name in sorted(files):
            if not name.endswith(".test"):
                continue
            with open(os.path.join(folder, name), "rb") as f:
                parts = re.split(rb"(?m)^//--- (.*)\n", f.read())
            # Some cases ask Clang to crash; there is nothing to learn from that here.
            if len(parts) > 1 and b"#pragma clang __debug" not in b"".join(parts):
                seeds[name] = {path.decode(): text for path, text in zip(parts[1::2], parts[2::2])}
    return seeds


def load_rules():
    folder = os.path.join(ROOT, "rules")
    rules = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            rules[name] = f.read()
    return rules


class Case:
    """One input: the files, what to run, and what is to be compared."""

    def __init__(self, seeds, rules, rng, work):
        self.rng, self.seeds, self.rules = rng, seeds, rules
        self.work = work  # the folder where it will lie
        self.files, self.flags = {}, []
        self.options, self.sources, self.mutate_cache, self.own_cache = [], [], False, False
        kind = rng.choices(["flags", "database", "rules", "headers", "cache"], [40, 34, 10, 6, 10])[0]
        self.kind = kind
        mock = MOCK
        if kind == "database":
            self.database()
        else:
            self.one_source()
            targets = sorted(p for p in self.files if p.endswith(".cpp") or rng.random() < 0.3)
        if kind == "rules":
            self.files.update({"rules/" + name: text for name, text in rules.items()})
            self.options.append("--rules-dir=rules")
            targets = ["rules/" + rng.choice(["operations.yaml"] + sorted(rules)) for _ in range(2)]
            targets = [t for t in targets if t.endswith(".yaml")] or ["rules/operations.yaml"]
        if kind == "headers":
            for path in sorted(glob.glob(os.path.join(MOCK, "*", "*.h"))):
                with open(path, "rb") as f:
                    self.files["mock/" + os.path.relpath(path, MOCK)] = f.read()
            mock = os.path.join(work, "mock")
            of_torch = [p for p in self.files if p.startswith("mock/torch/")]
            targets = [rng.choice(of_torch), rng.choice(of_torch), "mock/accelerate/accelerate.h"]
        self.flags = ["-I" + mock, "-std=c++17"]
        if kind == "cache":
            self.mutate_cache = True
        elif kind == "database":
            targets = [p for p in self.files if not p.startswith("build/CMakeCache")]
            # Each kind of file as often as any other.
            kinds = sorted({os.path.splitext(p)[1] or p for p in targets})
            chosen = rng.choice(kinds)
            targets = sorted(p for p in targets if (os.path.splitext(p)[1] or p) == chosen)
            self.mutate(targets)
        else:
            self.mutate(targets)
        if kind == "flags" and rng.random() < 0.05:
            self.flags.insert(
                rng.randrange(3),
                rng.choice(
                    [
                        "-include",
                        "-x",
                        "-D",
                        "-fno-exceptions",
                        "-std=c++20",
                        "-std=c++98",
                        "-xc",
                        "-m32",
                        "-fmodules",
                        "-E",
                    ]
                ),
            )
        self.choose_options()

    def one_source(self):
        rng = self.rng
        while True:
            sections = self.seeds[rng.choice(sorted(self.seeds))]
            mains = sorted(p for p, t in sections.items() if p.endswith(".cpp") and b"main(" in t)
            if mains:
                break
        main = rng.choice(mains)
        folder = os.path.dirname(main)
        self.files = {
            p: t
            for p, t in sections.items()
            if p == main or (p.endswith((".h", ".hpp")) and os.path.dirname(p) == folder)
        }
        self.sources = [main if rng.random() < 0.8 else rng.choice(["./" + main, os.path.join(self.work, main)])]
        if rng.random() < 0.15:
            # A header that includes itself, or one that includes the source.
            self.files[os.path.join(folder, "round.h")] = b'#include "%s"\n' % rng.choice(
                [b"round.h", os.path.basename(main).encode()]
            )
            self.files[main] = rng.choice([b"#pragma once\n", b""]) + b'#include "round.h"\n' + self.files[main]

    def database(self):
        """A project of one to three programs, now and then of equal names."""
        rng = self.rng
        commands, cmake, targets = (
            [],
            b"cmake_minimum_required(VERSION 3.18)\nproject(p CXX)\nfind_package(Torch REQUIRED)\n",
            [],
        )
        whole = [s for s in sorted(self.seeds) if "commands.json" in self.seeds[s] and "expected" not in s]
        if rng.random() < 0.3:
            sections = self.seeds[rng.choice(whole)]
            self.files = {p: t for p, t in sections.items() if p != "commands.json"}
            text = (
                sections["commands.json"]
                .decode()
                .replace("@DIR@", self.work)
                .replace("@FLAGS@", "-I%s -std=c++17" % MOCK)
            )
            try:
                commands = [c for c in json.loads(text) if c["file"] in self.files]
            except (ValueError, TypeError, KeyError):
                pass
            folders = sorted(os.path.dirname(p) for p in self.files if p.endswith("/CMakeLists.txt"))
            if folders:
                folder = rng.choice(folders) + "/"
                self.files.update({p[len(folder) :]: t for p, t in list(self.files.items()) if p.startswith(folder)})
        for i in range(0 if commands else rng.randrange(1, 4)):
            sections = self.seeds[rng.choice(sorted(self.seeds))]
            mains = sorted(p for p, t in sections.items() if p.endswith(".cpp") and b"main(" in t)
            if not mains:
                continue
            main = rng.choice(mains)
            folder = os.path.dirname(main)
            name = rng.choice(["train", "train", "p%d" % i])
            own = {
                p: t
                for p, t in sections.items()
                if p == main
                or (os.path.dirname(p) == folder and (p.endswith(".h") or (p.endswith(".cpp") and b"main(" not in t)))
            }
            for p, text in own.items():
                p = "p%d/%s" % (i, os.path.basename(p))
                self.files[p] = text
                if p.endswith(".cpp"):
                    # Some generators write paths relative to the build folder.
                    where, file = rng.choice([(self.work, p), (self.work, p), (self.work + "/build", "../" + p)])
                    output = "p%d/CMakeFiles/%s.dir/%s.o" % (i, name, os.path.basename(p))
                    commands.append(
                        {
                            "directory": where,
                            "file": file,
                            "command": "c++ -I%s -std=c++17 -o %s -c %s" % (MOCK, output, file),
                        }
                    )
            cmake += b"add_executable(%s p%d/%s)\ntarget_link_libraries(%s torch)\n" % (
                name.encode(),
                i,
                os.path.basename(main).encode(),
                name.encode(),
            )
            targets.append(name)
        self.files.setdefault("CMakeLists.txt", cmake)
        self.files["build/compile_commands.json"] = json.dumps(commands, indent=1).encode()
        # The root stays where `git apply` is run, whatever the database says.
        self.files["build/CMakeCache.txt"] = b"CMAKE_HOME_DIRECTORY:INTERNAL=" + self.work.encode() + b"\n"
        if rng.random() < 0.4:
            self.files[".clang-format"] = rng.choice(
                [
                    b"BasedOnStyle: Google\nColumnLimit: 60\n",
                    b"BasedOnStyle: LLVM\nUseTab: Always\n",
                    b"---\nLanguage: Cpp\nIndentWidth: 7\n",
                ]
            )
        if rng.random() < 0.3:
            self.files["CMakePresets.json"] = json.dumps(
                {
                    "version": 3,
                    "configurePresets": [
                        {"name": "base", "binaryDir": "${sourceDir}/build"},
                        {"name": "dev", "inherits": ["base", "other"]},
                        {"name": "other", "inherits": "dev", "binaryDir": "out/${presetName}"},
                    ],
                }
            ).encode()
        if rng.random() < 0.3:
            reply = "build/.cmake/api/v1/reply/"
            self.files[reply + "index-1.json"] = b'{"objects": [{"kind": "codemodel", "jsonFile": "codemodel.json"}]}'
            self.files[reply + "codemodel.json"] = json.dumps(
                {
                    "configurations": [
                        {"targets": [{"name": t, "id": t + "::@", "jsonFile": "target.json"} for t in targets]}
                    ]
                }
            ).encode()
            self.files[reply + "target.json"] = b'{"dependencies": [{"id": "train::@"}, {"id": "p0::@"}]}'
        if rng.random() < 0.5:
            self.options += ["-p", "build"]

    def mutate(self, targets):
        for _ in range(self.rng.choice([1, 1, 1, 2, 2, 3, 5, 8])):
            path = self.rng.choice(targets)
            how = self.rng.choice(mutations.for_file(path))
            self.files[path] = how(self.rng, self.files[path])[: 1 << 21]

    def choose_options(self):
        rng = self.rng
        for option, chance in (
            ("--no-verify", 0.1),
            ("--verify=compile", 0.03),
            ("--no-skip", 0.05),
            ("--no-prefilter", 0.05),
            ("--allow-errors", 0.15),
            ("--quiet", 0.1),
            ("-j1", 0.1),
        ):
            if rng.random() < chance:
                self.options.append(option)
        self.json = rng.random() < 0.1
        self.dump = not self.json and rng.random() < 0.06
        if self.json:
            self.options.append("--format=json")
        if self.dump:
            self.options.append("--dump=" + rng.choice(["roles", "placements"]))
        self.in_place = not self.json and not self.dump and rng.random() < 0.5
        self.plain = not self.dump and rng.random() < 0.2

    def command(self, *more):
        line = self.options + list(more)
        return line + (self.sources + ["--"] + self.flags if self.sources else [])
