#!/usr/bin/env bash
# launchers_test.sh LAUNCHER PROGRAM OUR_LAUNCHER FAULTY_PROGRAM: the same program, unchanged, started by somebody else's
# launcher on two ranks (torchrun, mpirun, mpiexec.hydra, or slurm_step.sh) trains as it does under ours, and an error on
# one rank ends it. Where the launcher starts ranks again (torchrun), a killed rank changes nothing.
set -uo pipefail
launcher=$1 program=$2 ours=$3 faulty=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export OMP_NUM_THREADS=1 ACCELERATE_TIMEOUT=60
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

case $(basename "$launcher") in
torchrun) start=("$launcher" --standalone --nproc_per_node=2 --no-python) ;;
# Open MPI asks root whether it's meant, and counts cores, of which there may be one.
mpirun*) start=("$launcher" --allow-run-as-root --oversubscribe -np 2) ;;
mpiexec*) start=("$launcher" -n 2) ;;
slurm_step.sh) start=("$launcher" 2) ;;
*)
  echo "launchers_test.sh: unknown launcher $launcher" >&2
  exit 2
  ;;
esac

timeout 120 "${start[@]}" "$program" job "$folder/theirs" >"$folder/theirs.log" 2>&1 ||
  fail "$launcher: $? $(cat "$folder/theirs.log")"
timeout 120 "$ours" launch --no_config -q --cpu -n 2 -- "$program" job "$folder/ours" >"$folder/ours.log" 2>&1 ||
  fail "accelerate-cpp: $? $(cat "$folder/ours.log")"
# Two ranks each, so that the sums have one order: bit for bit.
cmp "$folder/theirs/2/model.safetensors" "$folder/ours/2/model.safetensors" || fail "the weights differ"
grep -q '^trained on 2$' "$folder/theirs.log" || fail "the main process didn't speak: $(cat "$folder/theirs.log")"
[ "$(grep -c 'trained on' "$folder/theirs.log")" = 1 ] || fail "not one process spoke"

SECONDS=0
timeout 100 "${start[@]}" "$program" failing_job "$folder" >"$folder/failing.log" 2>&1 && fail "no failure is told"
[ "$SECONDS" -lt 60 ] || fail "a failure takes $SECONDS s"
grep -q 'rank 1 throws' "$folder/failing.log" || fail "the error isn't told: $(tail -5 "$folder/failing.log")"

if [ "$(basename "$launcher")" = torchrun ]; then
  mkdir "$folder/whole" "$folder/killed"
  timeout 120 "${start[@]}" "$faulty" "$folder/whole" >"$folder/whole.log" 2>&1 ||
    fail "whole: $? $(tail -20 "$folder/whole.log")"
  timeout 120 "$launcher" --max-restarts=1 "${start[@]:1}" "$faulty" "$folder/killed" backward kill 1 \
    >"$folder/killed.log" 2>&1 || fail "not started again: $? $(tail -20 "$folder/killed.log")"
  [ -e "$folder/killed/fault" ] || fail "no rank was killed"
  cmp "$folder/whole/final/model.safetensors" "$folder/killed/final/model.safetensors" ||
    fail "the weights differ after a restart"
fi
[ "$failures" = 0 ]
