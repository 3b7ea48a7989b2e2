#!/usr/bin/env bash
# How well step times are predicted on the host device. For each model, at each cap of the link: records a trace and holds
# `offprof validate` against it. Prints a table, a row each; docs/validation.md says how to read it.
#
#   scripts/validate_times.sh [--policies N] [--rounds N] [--tries N] [--links 'CAP ...'] [--reports FOLDER] [MODEL.pt...]
#
#   --policies  settings of each (30)
#   --rounds    times that each is visited (7)
#   --tries     times that a row is measured at most, trace and all, while noise hides whether predictions hold (3); where
#               they do not hold, that is the row
#   --links     caps of the link, `none` being no cap ('200MB/s 1GB/s none')
#   --reports   where the rows' reports go, as MODEL.LINK.json.gz, with the table and the conditions under which it was measured:
#               small enough to be committed (out/validate_times/reports)
#   MODEL.pt    models of your own, each with its input specs in MODEL.inputs or in the archive; without any: the models
#               under tests/models, and every model of the zoo
#
# About an hour on two cores. Leave the machine alone meanwhile: what else runs on it is measured too.
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

# Whether the trace was recorded while the cores that compute and copy shared a cache: those of a virtual machine do now and
# then not, and how much slower it is then to read what was copied back is predicted less well (docs/time.md).
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
            # Exit status 1, predictions that do not hold, shows in the last column.
            "$program" validate "$model" --trace "$trace" --policies "$policies" --rounds "$rounds" --format json \
                >"$report" || [ $? -eq 1 ]
            if ! grep -q '"outcome": "cannot tell"' "$report" || [ "$try" -eq "$tries" ]; then break; fi
        done
        gzip -9nc "$report" >"$reports/$(basename "$report").gz"
        row "$report" "$name" "${link/none/not capped}" "$try"
    done
done
