#!/usr/bin/env bash
# Runs operators that no constant of the cost model was fitted to, each on the virtual GPU of the card that it was
# measured on, and prints modelled over published times.
#
#   tests/published/held_out.sh OFFPROF PYTHON FOLDER [--check]
#
# FOLDER gets a table of all rows of each card, such as h100-80gb.csv. With --check, exit status 1 if the times are out
# of bounds.
set -euo pipefail
offprof=$1 python=$2 folder=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
table=$here/held_out.csv
mkdir -p "$folder"
outputs=()
for device in $(tail -n +2 "$table" | cut -d, -f1 | uniq); do
    outputs+=("$folder/$device.csv")
    "$python" "$here/kernels_only.py" "$device" "$folder/$device.json"
    "$offprof" exec --device "virtual:$folder/$device.json" -- "$python" "$here/measure.py" "$table" "$folder/$device.csv" --device "$device"
done
"$python" "$here/report.py" "${outputs[@]}" "${@:4}"
