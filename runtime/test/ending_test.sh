#!/usr/bin/env bash
# ending_test.sh PROGRAM: jobs that end well do so with 0 and speak once; those that don't, fail on all ranks,
# soon, with a message that names the rank and the operation.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$1
export RANKS_SECONDS=60
failures=0
fail() {
  echo "FAILED: $*"
  echo "$output"
  failures=$((failures + 1))
}

output_folder=$(mktemp -d)
trap 'rm -rf "$output_folder"' EXIT
for ranks in 2 4; do
  for mode in well late exit0; do
    SECONDS=0
    output=$(ACCELERATE_STDOUT=$output_folder "$here/run_ranks.sh" $ranks "$program" $mode 2>&1) ||
      fail "$mode on $ranks: exit code $?"
    [ "$(grep -c banner <<<"$output")" = 1 ] || fail "$mode on $ranks: not one banner"
    [ "$SECONDS" -lt 20 ] || fail "$mode on $ranks: took $SECONDS s"
  done
done
for rank in 1 2 3; do
  grep -q banner "$output_folder/rank$rank.out" || fail "rank $rank's output isn't in its file"
done

# By default the files lie in a folder of the job's, which goes with it; unless it fails: then they are named.
temporary=$output_folder/tmp
mkdir "$temporary"
for mode in well exit0; do
  output=$(TMPDIR=$temporary ACCELERATE_STDOUT=main "$here/run_ranks.sh" 3 "$program" $mode 2>&1) || fail "$mode: exit code $?"
  [ -z "$(ls -A "$temporary")" ] || fail "$mode leaves $(ls "$temporary")"
done
output=$(TMPDIR=$temporary ACCELERATE_STDOUT=main "$here/run_ranks.sh" 3 "$program" exit 2>&1) && fail "exit: no failure"
named=$(sed -n "s/.*this rank's standard output is in //p" <<<"$output")
[ "$(basename "$named")" = rank1.out ] && grep -q banner "$named" || fail "the output of the rank that failed isn't named"

# Whichever rank it is, also the one that has the store; and every other one says so.
ranks=4
for mode in return throw exit kill sleep; do
  for victim in 1 0; do
    SECONDS=0
    output=$(ACCELERATE_TIMEOUT=3 "$here/run_ranks.sh" $ranks "$program" $mode $victim 2>&1) &&
      fail "$mode on rank $victim of $ranks: no failure"
    [ "$SECONDS" -lt 40 ] || fail "$mode on rank $victim of $ranks: took $SECONDS s"
    for ((rank = 0; rank < ranks; ++rank)); do
      [ $rank = $victim ] ||
        grep -q "\[accelerate\] rank $rank of $ranks: backward (all-reduce of gradients) failed" <<<"$output" ||
        fail "$mode on rank $victim of $ranks: rank $rank's message"
    done
    echo "$mode on rank $victim of $ranks: $SECONDS s"
  done
  ranks=$((7 - ranks)) # three and four in turn
done

# The program's own timeout comes before the environment's.
output=$(ACCELERATE_TIMEOUT=50 "$here/run_ranks.sh" 3 "$program" sleep_briefly 2>&1) && fail "sleep_briefly: no failure"
grep -q 'timeout 3 s' <<<"$output" || fail "sleep_briefly: timeout"

# What is said of the cause: a rank that is dead, one that is elsewhere, one that threw.
output=$(ACCELERATE_TIMEOUT=3 "$here/run_ranks.sh" 2 "$program" kill 2>&1) && fail "kill: no failure"
grep -q 'No sign of life from rank 1 (process [0-9]* on ' <<<"$output" || fail "kill: the dead rank isn't named"
output=$(ACCELERATE_TIMEOUT=3 "$here/run_ranks.sh" 2 "$program" sleep 2>&1) && fail "sleep: no failure"
grep -q 'of rank 1 (process [0-9]* on .*; here operation [0-9]* is backward' <<<"$output" || fail "sleep: no places"
output=$(TORCHELASTIC_ERROR_FILE=$output_folder/error.json "$here/run_ranks.sh" 2 "$program" throw 2>&1) &&
  fail "throw: no failure"
grep -q 'Before that, rank 1 (process [0-9]* on .*) failed: rank 1 throws' <<<"$output" || fail "throw: no cause"
grep -q '"message":"' "$output_folder/error.json" || fail "throw: no error file"
[ "$failures" = 0 ]
