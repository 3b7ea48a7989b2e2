#!/usr/bin/env bash
# Runs the operators of the published measurements on a virtual A100 and prints modelled over published figures.
#
#   tests/published/compare.sh OFFPROF PYTHON FOLDER [--check]
#
# FOLDER gets the table of all rows, published.csv. With --check, exit status 1 if a figure is out of bounds.
set -euo pipefail
offprof=$1 python=$2 folder=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$folder"
"$offprof" exec --device virtual:a100-80gb -- "$python" "$here/measure.py" "$here/liger_a100.csv" "$folder/published.csv"
"$python" "$here/report.py" "$folder/published.csv" "${@:4}"
