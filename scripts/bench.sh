#!/usr/bin/env bash
# Installs missing packages, builds the benchmarks and runs them. Prints a table with the medians of five
# repetitions.
#
#   scripts/bench.sh [BENCHMARK_OPTION...]
#   scripts/bench.sh --python
#
#   --python            runs the benchmarks of Python programs instead
#   BENCHMARK_OPTION    an option of Google Benchmark, for example: scripts/bench.sh --benchmark_filter=replay
#
# docs/results/benchmarks.md describes the benchmarks and gives figures to compare with.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac

if [ "${1:-}" = --python ]; then
    "$root/scripts/setup.sh" --programs
    build release --target offprof offprof_python
    say "running on $(nproc) cores"
    exec "$python_tools/python" "$root/tests/bench/python/bench.py" --offprof "$root/build/offprof"
fi

benchmarks=(torch_free_bench disk_bench trace_bench tune_bench saved_tensor_bench)

run_benchmark() {
    local errors status=0
    errors=$(mktemp)
    "$root/build/bench/$1" --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
        --benchmark_format=json "${@:2}" 2>"$errors" | python3 "$root/tests/bench/table.py" || status=$?
    if [ "$status" -ne 0 ]; then cat "$errors" >&2; fi
    rm -f -- "$errors"
    return "$status"
}

"$root/scripts/setup.sh"
build release --target "${benchmarks[@]}"
say "running on $(nproc) cores"
for benchmark in "${benchmarks[@]}"; do run_benchmark "$benchmark" "$@"; done
