import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from selected import Selected

config.name = "accelerate-migrate (" + config.torch_name + ", " + config.part + ")"
config.test_format = Selected(config.part)
config.suffixes = [".test", ".cpp"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.available_features.add(config.torch_name)
# Nothing of the user's settings but where the cache lies: LibTorch's precompiled header is made once.
config.environment = {"PATH": config.llvm_bin + os.pathsep + os.environ.get("PATH", ""),
                      "HOME": os.path.expanduser("~"), "LC_ALL": "C.UTF-8"}
# The tests' folders lie inside our own work tree, which is none of the tests' business: neither git's state nor our style.
config.environment["GIT_CEILING_DIRECTORIES"] = config.test_exec_root
os.makedirs(config.test_exec_root, exist_ok=True)
with open(os.path.join(config.test_exec_root, ".clang-format"), "w") as style:
    style.write("DisableFormat: true\n")
if config.torch_name == "mock":
    # Precompiled headers of the mock would push LibTorch's out.
    config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")
elif "XDG_CACHE_HOME" in os.environ:
    config.environment["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]
config.substitutions += [
    ("%migrate", config.migrate),
    ("%torch", config.torch_flags),
    # %case DIR: migrates DIR/main.cpp in place, compares with DIR/expected.cpp, and migrates again: nothing to do.
    ("%case", f"sh {os.path.dirname(__file__)}/Inputs/case.sh {config.migrate} '{config.torch_flags}'"),
    # %refuse DIR: migrating DIR/main.cpp in place must exit with 1 and change nothing.
    ("%refuse", f"sh {os.path.dirname(__file__)}/Inputs/refuse.sh {config.migrate} '{config.torch_flags}'"),
    # %exits CODE COMMAND...: the command must exit with CODE.
    ("%exits", f"sh {os.path.dirname(__file__)}/Inputs/exits.sh"),
    ("%inputs", os.path.join(os.path.dirname(__file__), "Inputs")),
    ("%examples", os.path.join(os.path.dirname(__file__), "../../examples")),
    ("%programs", os.path.join(os.path.dirname(__file__), "../programs")),
]
