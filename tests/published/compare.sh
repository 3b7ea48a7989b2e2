#!/usr/bin/env bash
# Runs the operators of a table on a virtual GPU and prints modelled over published or measured figures.
#
#   tests/published/compare.sh OFFPROF PYTHON TABLE.csv PROFILE FOLDER [--check]
#
# FOLDER gets the table with the modelled figures, under the same name. With --check, exit status 1 if a figure is out
# of bounds.
set -euo pipefail
offprof=$1 python=$2 table=$3 profile=$4 folder=$5
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$folder"
output=$folder/$(basename "$table")
"$python" "$here/kernels_only.py" "$profile" "$folder/$profile.json"
"$offprof" exec --device "virtual:$folder/$profile.json" -- "$python" "$here/measure.py" "$table" "$output"
"$python" "$here/report.py" "$output" "${@:6}"
