#!/usr/bin/env bash
# Measures the accuracy of predicted step times on the host device. For each model and each cap of the link,
# records a trace and runs `offprof validate` on it. Prints a table with one row for each; docs/results/validation.md
# explains it.
#
#   scripts/validate_times.sh [--policies N] [--rounds N] [--tries N] [--links 'CAP ...'] [--reports FOLDER] [MODEL.pt...]
#
#   --policies  settings per row (default 30)
#   --rounds    visits of each setting (default 7)
#   --tries     maximum number of measurements of a row, with a new trace each, while noise hides the result
#               (default 3); a row whose predictions do not hold is not measured again
#   --links     caps of the link; `none` is no cap (default '200MB/s 1GB/s none')
#   --reports   folder for the rows' reports as MODEL.LINK.json.gz, with the table and the conditions of the
#               measurement; they are small enough to be committed (default out/validate_times/reports)
#   MODEL.pt    your own models, each with its input specs in MODEL.inputs or in the archive; default: the models in
#               tests/models, and every model of the zoo
#
# Takes about an hour on two cores. Leave the machine idle meanwhile, since other load affects the measurements.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

policies=30
rounds=7
tries=3
links='200MB/s 1GB/s none'
reports=$root/out/validate_times/reports
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) print_help && exit ;;
    --policies) policies=${2:?} && shift 2 ;;
    --rounds) rounds=${2:?} && shift 2 ;;
    --tries) tries=${2:?} && shift 2 ;;
    --links) links=${2:?} && shift 2 ;;
    --reports) reports=${2:?} && shift 2 ;;
    -*) die 2 "no such option: $1" "see scripts/validate_times.sh --help" ;;
    *) break ;;
    esac
done

"$root/scripts/setup.sh"
build release --target offprof offprof_engine
program=$root/build/offprof
folder=$root/out/validate_times
mkdir -p "$folder" "$reports"
models=("$@")
if [ $# -eq 0 ]; then
    models=("$root"/tests/models/*.pt)
    for name in $("$program" zoo list --format json |
        python3 -c 'import json, sys; print(*(model["name"] for model in json.load(sys.stdin)["models"]))'); do
        "$program" zoo make "$name" -o "$folder/$name.pt" -q >/dev/null
        models+=("$folder/$name.pt")
    done
fi

# Succeeds if the cores that compute and copy shared a cache while the trace was recorded. On a virtual
# machine this changes from time to time, and without it the time to read tensors that were copied back is
# predicted less well (docs/internals/time-model.md).
near() { python3 "$root/tests/validation/shares_cache.py" "$1"; }

row() { python3 "$root/tests/validation/times_row.py" "$@" | tee -a "$reports/table.md"; }

{
    echo "commit: $(git -C "$root" describe --always --dirty --abbrev=12)"
    echo "command: scripts/validate_times.sh --policies $policies --rounds $rounds --tries $tries --links '$links'"
    echo "begun: $(date -u +%FT%TZ)"
    echo "cores: $(nproc)"
} >"$reports/conditions.txt"
: >"$reports/table.md"
row --head
for model in "${models[@]}"; do
    name=$(basename "$model" .pt)
    trace=$folder/$name.trace.json
    inputs=()
    if [ -f "${model%.pt}.inputs" ]; then inputs=(--input "@${model%.pt}.inputs"); fi
    for link in $links; do
        report=$folder/$name.${link//\//_}.json
        cap=()
        if [ "$link" != none ]; then cap=(--link "$link"); fi
        for ((try = 1; try <= tries; try++)); do
            for ((recording = 1; recording <= 10; recording++)); do
                "$program" run "$model" "${inputs[@]}" "${cap[@]}" -o "$trace" -q >/dev/null
                if near "$trace"; then break; fi
                sleep 5
            done
            # Exit status 1 (predictions do not hold) is shown in the last column.
            "$program" validate "$model" --trace "$trace" --policies "$policies" --rounds "$rounds" --format json \
                >"$report" || [ $? -eq 1 ]
            if ! grep -q '"outcome": "cannot tell"' "$report" || [ "$try" -eq "$tries" ]; then break; fi
        done
        gzip -9nc "$report" >"$reports/$(basename "$report").gz"
        row "$report" "$name" "${link/none/not capped}" "$try"
    done
done
