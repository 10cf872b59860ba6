"""Which tests a suite runs, by what they need."""

import os
import zlib

import lit.formats

SHARE = 16


class Selected(lit.formats.ShTest):
    """Tests that need LibTorch's headers and one in SHARE of the others, so that our own small headers can't drift unseen
    (`part` is "needing"), the rest ("other"), or all of them ("all")."""

    def __init__(self, part):
        super().__init__(execute_external=False)
        self.part = part

    def getTestsInDirectory(self, *arguments):
        for test in super().getTestsInDirectory(*arguments):
            path = test.getSourcePath()
            with open(path, encoding="utf-8", errors="replace") as text:
                needs = "REQUIRES: libtorch" in text.read()
            # By the name, so that a new test changes nothing for the others.
            needs = needs or zlib.crc32(os.path.basename(path).encode()) % SHARE == 0
            if self.part == "all" or needs == (self.part == "needing"):
                yield test
