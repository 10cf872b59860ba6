#!/usr/bin/env bash
# reading_test.sh PROGRAM: what one rank can't read is an error on all ranks, at once, that names the rank and the reason;
# whether the program catches it or not, whichever rank it is. And nothing can be done with that rank behind it.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$1
export RANKS_SECONDS=60 ACCELERATE_TIMEOUT=40
output_folder=$(mktemp -d)
trap 'rm -rf "$output_folder"' EXIT
export TMPDIR=$output_folder
failures=0
fail() {
  echo "FAILED: $case: $*"
  echo "$output"
  failures=$((failures + 1))
}

# expect RANK TEXT: of its output
expect() {
  grep -q "^\[rank $1\] .*$2" <<<"$output" || fail "rank $1 doesn't say '$2'"
}

run() { # WHAT RANKS RANK [uncaught]
  case="$*"
  SECONDS=0
  output=$("$here/run_ranks.sh" "$2" "$program" "$1" "$3" ${4:+"$4"} 2>&1) && fail "no failure"
  [ "$SECONDS" -lt 30 ] || fail "took $SECONDS s"
  echo "$case: $SECONDS s"
}

ranks=2
for what in row transform worker evaluation in_place in_place_worker alike; do
  for victim in 0 $((ranks - 1)); do
    run $what $ranks $victim
    for ((rank = 0; rank < ranks; ++rank)); do
      if [ $rank = $victim ]; then
        expect $rank 'caught: .*row 17 is unreadable'
        expect $rank "then: \[accelerate\] rank $rank of $ranks: .*reduce.* is not possible any more: this rank has left the others, since it couldn't read a batch: .*row 17 is unreadable"
      else
        expect $rank "caught: \[accelerate\] rank $rank of $ranks: .* failed after"
        expect $rank "Before that, rank $victim (process [0-9]* on .*) failed: it couldn't read a batch: .*row 17 is unreadable"
        expect $rank 'then: \[accelerate\] .* is not possible any more: '
      fi
    done
    ranks=$((5 - ranks)) # two and three in turn
  done
done
run reset 2 0
expect 1 "Before that, rank 0 (process [0-9]* on .*) failed: it couldn't read a batch: row 17 is unreadable"

# Where nobody catches it, and where it is the program's own code that throws. The store goes with rank 0, the reason stays.
for what in row user; do
  for victim in 0 1; do
    run $what 3 $victim uncaught
    expect 2 "Before that, rank $victim (process [0-9]* on .*) failed: .*row 17 is unreadable"
  done
done

# Files of a checkpoint are looked at before anything is changed: after the error all ranks go on.
for victim in 0 1; do
  run checkpoint 3 $victim
  for rank in 0 1 2; do
    expect $rank 'caught: .*model.safetensors'
    [ $rank = $victim ] || expect $rank "caught: .*load_state(c) failed on rank $victim: "
    expect $rank 'then: no error'
  done
done
[ "$failures" = 0 ]
