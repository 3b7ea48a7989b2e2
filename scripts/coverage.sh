#!/usr/bin/env bash
# Measures the lines and branches that the test programs execute. Prints a table by module and the ten least
# covered files.
#
#   scripts/coverage.sh [--engine] [--no-run]
#
#   --engine    measures all modules, with LibTorch (slow); default: the modules of the small flavour
#   --no-run    prints the tables of the last run again
#
# Builds with gcov and without optimization in build-coverage (or build-coverage-engine), and runs the test
# programs completely. Omits the fuzzers' corpora, since they assert little. Does not count test code, nor the
# branches that the compiler adds for exceptions. Exit status: 0 success, 1 a test program failed, 3 something
# is missing.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

flavour=small
run=true
while [ $# -gt 0 ]; do
    case $1 in
    --engine) flavour=release ;;
    --no-run) run=false ;;
    -h | --help) print_help && exit ;;
    *) die 2 "no such option: $1" "see scripts/coverage.sh --help" ;;
    esac
    shift
done

if [ "$flavour" = small ]; then
    folder=$root/build-coverage
    jobs=$(job_count)
    "$root/scripts/setup.sh" --small --coverage
else
    folder=$root/build-coverage-engine
    jobs=$(job_count "$mib_per_torch_job")
    "$root/scripts/setup.sh" --coverage
fi

build_with_gcov() {
    local programs
    configure "$flavour" -B "$folder" -DCMAKE_BUILD_TYPE=Debug -DOFFPROF_BUILD_BENCHMARKS=OFF -DOFFPROF_WERROR=OFF \
        "-DCMAKE_CXX_FLAGS=-O0 -g0 --coverage -fprofile-abs-path -fprofile-update=atomic"
    mapfile -t programs < <(ninja -C "$folder" -t targets all | sed -nE 's/^(\w+_test): phony$/\1/p')
    say "building ${#programs[@]} test programs in $folder ($jobs jobs)"
    cmake --build "$folder" --parallel "$jobs" --target "${programs[@]}"
}

# run_program PROGRAM: runs a test program and shows its output only if it fails.
run_program() {
    local log=$1.log
    if (cd "$folder" && timeout 3600 "$1" --gtest_brief=1 >"$log" 2>&1); then
        say "$(basename "$1")"
    else
        say "$(basename "$1") FAILED"
        tail -n 20 "$log"
        return 1
    fi
}

run_programs() {
    find "$folder" -name '*.gcda' -delete
    local program status=0
    while IFS= read -r program; do run_program "$program" || status=1; done < <(
        find "$folder" "$folder/tests" -maxdepth 1 -type f -name '*_test' -perm -u+x | sort
    )
    return "$status"
}

# Test code is in the same folders as the code that it tests.
test_code='.*_test\.cpp|.*_fixture\.h|.*/(sample|random|fake)_[a-z_]*\.(h|cpp)|.*_under_test\.h|.*/faulty_disk\.h'
test_code+='|.*/disk_pattern\.h|.*/test_folder\.h|.*/cli_run\.h|.*/graph_cases\.h|.*/recording_executor\.h'

status=0
if $run; then
    build_with_gcov
    run_programs || status=1
    say "reading the counts of gcov"
    gcovr --root "$root" --object-directory "$folder" --filter "$root/(traces|engine|simulator|profiler|cli)/" \
        --exclude "$test_code" --exclude-throw-branches --exclude-unreachable-branches -j "$jobs" \
        --json-summary "$folder/coverage.json" "$folder" >/dev/null
fi
python3 "$root/tests/coverage/coverage_table.py" "$folder/coverage.json"
exit "$status"
