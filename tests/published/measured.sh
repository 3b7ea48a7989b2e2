#!/usr/bin/env bash
# Runs the operators whose kernels were measured on an H100 (traces/recorded/h100/kernels.csv) on a virtual one, and
# prints modelled over measured times.
#
#   tests/published/measured.sh OFFPROF PYTHON FOLDER [--check]
#
# FOLDER gets the table of all rows, kernels.csv. With --check, exit status 1 if the times are out of bounds.
set -euo pipefail
offprof=$1 python=$2 folder=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$folder"
"$offprof" exec --device virtual:h100-80gb -- "$python" "$here/measure.py" "$here/../../traces/recorded/h100/kernels.csv" \
    "$folder/kernels.csv"
"$python" "$here/report.py" "$folder/kernels.csv" "${@:4}"
