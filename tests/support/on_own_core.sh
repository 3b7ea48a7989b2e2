#!/usr/bin/env bash
# Runs a command on one core, which no other command has that this script runs with the same folder.
#
#   on_own_core.sh FOLDER COMMAND...
#
# FOLDER has a file for each core, which is locked while the command runs. Without a free core, and where
# cores cannot be chosen, the command may use all.
set -uo pipefail

folder=$1
shift
mkdir -p "$folder"
for core in $(taskset -cp $$ 2>/dev/null | sed 's/.*: //; s/,/ /g'); do
    for ((core_number = ${core%-*}; core_number <= ${core#*-}; ++core_number)); do
        exec {lock}>"$folder/$core_number"
        if flock --nonblock "$lock"; then exec taskset -c "$core_number" "$@"; fi
        exec {lock}>&-
    done
done
exec "$@"
