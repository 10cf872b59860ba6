"""Which tests a suite runs, by what they need."""

import lit.formats


class Selected(lit.formats.ShTest):
    """Tests that need LibTorch's headers (`part` is "needing"), the others ("other"), or all of them ("all")."""

    def __init__(self, part):
        super().__init__(execute_external=False)
        self.part = part

    def getTestsInDirectory(self, *arguments):
        for test in super().getTestsInDirectory(*arguments):
            with open(test.getSourcePath(), encoding="utf-8", errors="replace") as text:
                needs = "REQUIRES: libtorch" in text.read()
            if self.part == "all" or needs == (self.part == "needing"):
                yield test
