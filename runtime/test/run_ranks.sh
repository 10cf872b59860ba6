#!/usr/bin/env bash
# run_ranks.sh N PROGRAM [ARGUMENT...]: runs a program on N ranks of this host, as torchrun would, for at most
# $RANKS_SECONDS (default 120) seconds. N = 1 runs it alone, without a launcher's variables. Prints what the
# ranks wrote, each line with its rank; fails if any of them fails.
set -uo pipefail
ranks=$1
shift
if [ "$ranks" = 1 ]; then
  exec env -u RANK -u WORLD_SIZE timeout -k 5 "${RANKS_SECONDS:-120}" "$@"
fi
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
export OMP_NUM_THREADS=1 ACCELERATE_STDOUT=${ACCELERATE_STDOUT:-all} ACCELERATE_TIMEOUT=${ACCELERATE_TIMEOUT:-60}
for ((rank = 0; rank < ranks; ++rank)); do
  RANK=$rank LOCAL_RANK=$rank timeout -k 5 "${RANKS_SECONDS:-120}" "$@" >"$folder/$rank" 2>&1 &
  processes[rank]=$!
done
status=0
for ((rank = 0; rank < ranks; ++rank)); do
  wait "${processes[rank]}" || {
    code=$?
    echo "rank $rank failed with $code"
    status=$code
  }
done
for ((rank = 0; rank < ranks; ++rank)); do
  sed "s/^/[rank $rank] /" "$folder/$rank"
done
exit $status
