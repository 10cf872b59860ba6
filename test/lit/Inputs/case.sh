#!/bin/sh
# case.sh TOOL FLAGS DIR: migrates DIR/main.cpp in place, compares it with DIR/expected.cpp, and migrates it again, which
# must change nothing. What the first run reports goes to standard output, for FileCheck.
set -eu
tool=$1 flags=$2
cd "$3"
# shellcheck disable=SC2086 # a list of flags
"$tool" --in-place main.cpp -- $flags 2>&1 || [ $? = 1 ]
diff -u expected.cpp main.cpp
# shellcheck disable=SC2086
"$tool" --quiet main.cpp -- $flags >again.diff 2>again.err || [ $? = 1 ]
if [ -s again.diff ]; then
  echo "a second migration isn't empty:"
  cat again.diff
  exit 1
fi
