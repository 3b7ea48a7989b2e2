#!/usr/bin/env bash
# Installs what is missing, builds the benchmarks and runs them; prints a table with the medians of five repetitions.
#
#   scripts/bench.sh [BENCHMARK_OPTION...]
#
#   BENCHMARK_OPTION    goes to Google Benchmark, for example: scripts/bench.sh --benchmark_filter=replay
#
# What is measured, and figures to compare with: docs/benchmarks.md
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac

benchmarks=(torch_free_bench trace_bench tune_bench saved_tensor_bench)

# Medians out of the CSV of Google Benchmark, whose columns differ from program to program.
print_table() {
    awk -F , '
        function scaled(value) {
            if (value >= 1e9) return sprintf("%.3g G", value / 1e9)
            if (value >= 1e6) return sprintf("%.3g M", value / 1e6)
            if (value >= 1e3) return sprintf("%.3g k", value / 1e3)
            return sprintf("%.3g ", value)
        }
        { gsub(/"/, "") }
        $1 == "name" { for (i = 1; i <= NF; ++i) column[i] = $i; next }
        sub(/_median$/, "", $1) {
            sub(/\/(real|manual)_time$/, "", $1)
            line = ""
            for (i = 6; i <= NF; ++i) {
                if ($i == "") continue
                if (column[i] == "bytes_per_second") line = line "  " scaled($i) "B/s"
                else if (column[i] == "items_per_second") line = line "  " scaled($i) $8 "/s"
                else if (i > 10) line = line sprintf("  %s %.3g", column[i], $i)
            }
            printf "%-22s %8.3g %s%s\n", $1, $3, $5, line
        }'
}

run_benchmark() {
    local errors status=0
    errors=$(mktemp)
    "$root/build/bench/$1" --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
        --benchmark_format=csv "${@:2}" 2>"$errors" | print_table || status=$?
    if [ "$status" -ne 0 ]; then cat "$errors" >&2; fi
    rm -f -- "$errors"
    return "$status"
}

"$root/scripts/setup.sh"
build release --target "${benchmarks[@]}"
say "on $(nproc) cores"
for benchmark in "${benchmarks[@]}"; do run_benchmark "$benchmark" "$@"; done
