#!/usr/bin/env bash
# launching_test.sh PROGRAM: ranks that a program starts itself train as one process does; if one fails, the others
# end and the program is told; where copies of the process would hang, none are made.
set -uo pipefail
program=$1
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE OMP_NUM_THREADS

export TMPDIR=$folder/tmp # where ranks other than the first write to standard output, if they don't end well
mkdir "$TMPDIR"
timeout 100 "$program" train "$folder" || fail "train: $?"
[ -z "$(ls -A "$TMPDIR")" ] || fail "train leaves $(ls "$TMPDIR")"
timeout 20 "$program" compare "$folder" || fail "the ranks' training isn't one process's"

expect() { # MODE TEXT SECONDS
  SECONDS=0
  output=$(timeout 40 "$program" "$1" "$folder" 2>&1) && fail "$1: no failure"
  grep -q "$2" <<<"$output" || fail "$1: $output"
  [ "$SECONDS" -lt "$3" ] || fail "$1: took $SECONDS s"
}
expect throw 'error: .*rank 1 of 4 failed: exit code 1; the other ranks were ended' 20
expect throw '\[rank 1\] rank 1 throws' 20
expect exit 'rank 1 of 4 failed: exit code 3' 20
expect exit "; what they wrote to standard output is in $TMPDIR/accelerate-" 20
expect abort 'rank 1 of 4 failed: signal 6' 20
expect accelerator 'there is an Accelerator' 10
expect threads 'this process has [23] threads' 10 # ThreadSanitizer has one of its own
expect openmp 'this process has [0-9]* threads' 10
RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 expect throw 'is a rank of a job already' 10
[ "$failures" = 0 ]
