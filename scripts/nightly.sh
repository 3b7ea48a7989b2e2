#!/usr/bin/env bash
# Runs the checks that take too long for every change: all tests with the newest LibTorch, three times under load,
# and with sanitizers, training programs of many kinds under many policies, packages on a bare Debian, fuzzing of every
# reader, random programs for hours, long runs, and mutation testing. A failed part does not stop the others.
#
#   scripts/nightly.sh [--runs N] [--hours H]
#
#   --runs    executions of each fuzz target (default 10000000), and a tenth of them with all sanitizers
#   --hours   duration of the random programs (default 1)
#
# Exit status 1 if any part failed.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

runs=10000000
hours=1
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) print_help && exit ;;
    --runs) runs=${2:?} && shift 2 ;;
    --hours) hours=${2:?} && shift 2 ;;
    *) die 2 "no such option: $1" "see scripts/nightly.sh --help" ;;
    esac
done

# The number of cases that the tests run: see CONTRIBUTING.md.
export OFFPROF_TEST_EXTENT=full

# On a busy machine threads start late, end late and are preempted anywhere. This reveals wrong assumptions of
# tests about their timing.
load=8
runs_beside_load=3
seconds_per_test_beside_load=7200

# tests_beside_load: runs all tests while $load processes compute.
tests_beside_load() {
    local stress status=0
    stress-ng --cpu "$load" --quiet &
    stress=$!
    "$root/scripts/test.sh" --no-tests=error --timeout "$seconds_per_test_beside_load" || status=$?
    if ! kill "$stress" 2>/dev/null; then
        say "stress-ng ended before the tests, so they ran without load"
        status=1
    fi
    wait "$stress" || true
    return "$status"
}

# predictions_of_programs SCRIPT [OPTION...]: runs a script of tests/programs with the release build.
predictions_of_programs() {
    "$python_tools/python" "$root/tests/programs/$1" --offprof "$root/build/offprof" "${@:2}"
}

"$root/scripts/setup.sh" --nightly --programs || exit
part "tests" "$root/scripts/test.sh"
part "tests with LibTorch 2.15" "$root/scripts/test.sh" --only torch-2.15
part "training programs on host, predicted and run" predictions_of_programs exactness.py
part "training programs on a virtual GPU, predicted and run" predictions_of_programs exactness.py --device virtual:h200
part "OffloadActivations in training programs on host" predictions_of_programs offloading.py
part "OffloadActivations in training programs on a virtual GPU" predictions_of_programs offloading.py --device virtual:h200
part "TRL's own offloading against its simulation" predictions_of_programs trl_witness.py
part "ranks of large jobs, each alone" predictions_of_programs ranks/llama_table.py
part "advice on training programs against single ways" predictions_of_programs advising.py
part "exports against the engines that they are for" predictions_of_programs export_witness.py
part "operators and cards that the cost model was not fitted to" "$root/scripts/published.sh" --held-out --check
part "kernels that were measured on an H100" "$root/scripts/published.sh" --measured --check
part "steps of whole models that were measured on an H100" "$root/scripts/published.sh" --models --check
part "constants of the cost model, fitted without each operator" "$root/scripts/published.sh" --left-out --check
part "wheel and Debian package on bare Debian 12" "$root/scripts/install_check.sh"
for ((run = 1; run <= runs_beside_load; run++)); do
    part "tests under a load of $load, run $run of $runs_beside_load" tests_beside_load
done
part "address and undefined-behaviour sanitizers" "$root/scripts/test.sh" --only asan
part "thread sanitizer" "$root/scripts/test.sh" --only tsan
part "headers that include LibTorch's, each alone" "$root/scripts/lint.sh" torch-headers
part "fuzzing" "$root/scripts/fuzz.sh" --fast --runs "$runs"
part "fuzzing with sanitizers" "$root/scripts/fuzz.sh" --runs $((runs / 10))
part "random programs" "$root/scripts/soak.sh" --hours "$hours"
part "mutation testing" "$root/scripts/mutation_check.sh"
summary
