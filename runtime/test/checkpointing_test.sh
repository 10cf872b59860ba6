#!/usr/bin/env bash
# checkpointing_test.sh PROGRAM: a job goes on with another number of ranks as if nothing had happened; a process
# that is killed while it saves leaves checkpoints that load.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$1
export RANKS_SECONDS=60
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for saved in 4 2 1; do
  "$here/run_ranks.sh" $saved "$program" train "$folder" || fail "training on $saved ranks"
  for ranks in 3 1 4; do
    rm -rf "$folder/resumed"
    "$here/run_ranks.sh" $ranks "$program" resume "$folder" || fail "resuming on $ranks ranks"
    echo "saved on $saved, resumed on $ranks: $("$program" compare "$folder")" || fail "$saved to $ranks ranks"
    "$program" compare "$folder" >/dev/null || fail "$saved to $ranks ranks"
  done
done

mkdir "$folder/hammer"
for ((round = 0; round < 12; ++round)); do
  "$program" hammer "$folder/hammer" &
  process=$!
  # Not before the first checkpoint of this round, and at no particular moment of a later one.
  latest() { ls "$folder/hammer/checkpoints" 2>/dev/null | sort -t_ -k2 -n | tail -1; }
  before=$(latest)
  for ((i = 0; i < 1000; ++i)); do
    [ "$(latest)" != "$before" ] && break
    sleep 0.02
  done
  sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
  kill -KILL $process
  wait $process 2>/dev/null
  "$program" check "$folder/hammer" || fail "the latest checkpoint of round $round"
  count=$(ls "$folder/hammer/checkpoints" | wc -l)
  [ "$count" -le 4 ] || fail "total_limit: $count checkpoints"
done
"$program" hammer "$folder/hammer" &
process=$!
sleep 2
kill -KILL $process
wait $process 2>/dev/null
hidden=$(ls -A "$folder/hammer/checkpoints" | grep -c '^\.')
[ "$hidden" -le 2 ] || fail "$hidden leftovers of saves and removals that were cut off"
[ "$failures" = 0 ]
