#!/bin/sh
# exits.sh CODE COMMAND...: runs the command, which must exit with CODE.
want=$1
shift
"$@"
code=$?
[ "$code" = "$want" ] || { echo "exit code $code, expected $want" >&2; exit 1; }
