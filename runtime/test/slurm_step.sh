#!/usr/bin/env bash
# slurm_step.sh TASKS PROGRAM [ARGUMENT...]: starts a program with what `srun --kill-on-bad-exit` on one host tells each task
# of a job step (srun(1), "OUTPUT ENVIRONMENT VARIABLES"), where there is no Slurm. Fails if a task does.
set -uo pipefail
tasks=$1
shift
export SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=$(uname -n)
export SLURM_NTASKS=$tasks SLURM_STEP_NUM_TASKS=$tasks SLURM_STEP_TASKS_PER_NODE=$tasks
processes=()
for ((task = 0; task < tasks; ++task)); do
  SLURM_PROCID=$task SLURM_LOCALID=$task "$@" &
  processes+=($!)
done
status=0
for ((task = 0; task < tasks; ++task)); do
  wait -n || {
    code=$?
    [ "$status" != 0 ] || status=$code
    kill "${processes[@]}" 2>/dev/null
  }
done
exit $status
