#!/usr/bin/env python3
"""rename.py NAMES: copies a program from standard input to standard output, with its own names exchanged.

NAMES is a file with the program's names, separated by blanks: each becomes the next one, the last becomes the first.
`.name` is a member; the others stay behind `.`, `->` and `::`, where they are somebody else's. With `Net` goes `NetImpl`.
Strings, comments and what the migration writes (`accelerator.name`) stay.
"""
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    listed = file.read().split()
names = [name.lstrip(".") for name in listed]
assert len(set(names)) == len(names), "a name stands there twice"
becomes = dict(zip(names, names[1:] + names[:1]))
members = {name.lstrip(".") for name in listed if name.startswith(".")}
WORD = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\d[\w.\']*|[A-Za-z_]\w*')
renamed = set()
code = 0  # where code begins again behind a comment


def word(match):
    global code
    text = match.group()
    if text.startswith("//"):
        code = match.end()
    stem = text[:-4] if text.endswith("Impl") and text[:-4] in becomes else text
    if stem not in becomes:
        return text
    ahead = match.string[code : match.start()].rstrip()
    if ahead.endswith("::") or ahead.endswith("accelerator."):
        return text
    if ahead.endswith((".", "->")) and stem not in members:
        return text
    renamed.add(stem)
    return becomes[stem] + text[len(stem):]


program = WORD.sub(word, sys.stdin.read())
missing = [name for name in names if name not in renamed]
assert not missing, f"the program has no {', '.join(missing)}"
sys.stdout.write(program)
