#!/bin/sh
# refuse.sh TOOL FLAGS DIR: migrates DIR/main.cpp in place, which must exit with 1 and change no byte. What it reports
# goes to standard output, for FileCheck.
set -eu
tool=$1 flags=$2
cd "$3"
cp main.cpp before.cpp
code=0
# shellcheck disable=SC2086 # a list of flags
"$tool" --in-place main.cpp -- $flags >out.txt 2>&1 || code=$?
cat out.txt
[ "$code" = 1 ] || { echo "exit code $code"; exit 1; }
cmp before.cpp main.cpp
