#!/usr/bin/env bash
# race_test.sh PROGRAM: ThreadSanitizer reports the program's race, where it is, and lets the test fail for it.
set -uo pipefail
output=$(timeout 60 "$1" 2>&1)
code=$?
if [ "$code" = 66 ] && # its own code for a process that it has reported something of
  grep -q 'WARNING: ThreadSanitizer: data race' <<<"$output" && grep -q '#0 .*Counting::get.*race.cpp' <<<"$output"; then
  exit 0
fi
echo "FAILED: exit code $code, and no report of the race in Counting::get:"
echo "$output"
exit 1
