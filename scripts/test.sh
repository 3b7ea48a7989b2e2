#!/usr/bin/env bash
# Installs missing packages, builds, and runs every test. First tests the program and the command line of the
# small flavour, whose other code is the same as in the release. Then runs all tests of the release, with the
# engine.
#
#   scripts/test.sh [--only PRESET] [--check-skipped] [CTEST_OPTION...]
#
#   --only PRESET      all tests of only one preset: small, release, torch-2.15, debug, asan or tsan
#   --check-skipped    fails if the skipped tests of `release` are not those in tests/skipped_tests.txt
#   CTEST_OPTION       an option of ctest, for example: scripts/test.sh --only small -R traces_test
#
# A CTest entry is a test program or a part of one. To run a single case:
# build/tests/traces_test --gtest_filter='Units.*'
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

presets=(small release)
skipped_list=()
# time limit for a test program that hangs
seconds_per_test=1800

while [ $# -gt 0 ]; do
    case $1 in
    --only)
        [ $# -ge 2 ] || die 2 "--only needs a preset: small, release, torch-2.15, debug, asan or tsan"
        case $2 in
        small | release | torch-2.15 | debug | asan | tsan) presets=("$2") ;;
        *) die 2 "no such preset: $2" "The presets are small, release, torch-2.15, debug, asan and tsan." ;;
        esac
        shift 2
        ;;
    --check-skipped) skipped_list=(--check-skipped "$root/tests/skipped_tests.txt") && shift ;;
    -h | --help) print_help && exit ;;
    *) break ;;
    esac
done
ctest_options=("$@")
# Tests run on all processors in parallel. Threads that spin while they wait for LibTorch's work would take
# processors from other tests.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
# A flavour without any tests must not pass. With a filter of the caller, a flavour may have no matching test.
if [ $# -eq 0 ]; then ctest_options=(--no-tests=error); fi

run_tests() {  # BUILD [FOLDER_IN_BUILD [SUMMARY_OPTION...]]: the tests of that folder, `.` being all.
    local build=$root/$1 folder=${2:-.} passed=true
    say "testing $1"
    rm -rf -- "$build/test_reports"
    mkdir -p "$build/test_reports"
    ctest --test-dir "$build/$folder" --output-on-failure --parallel "$(job_count)" --timeout "$seconds_per_test" \
        --output-junit "$build/test_reports/ctest.xml" "${ctest_options[@]}" || passed=false
    python3 "$root/tests/support/summary.py" --build "$build" "${@:3}" || passed=false
    $passed
}

case ${presets[*]} in
small | tsan) "$root/scripts/setup.sh" --small --shells ;;
torch-*) "$root/scripts/setup.sh" --hta --python --browser --shells --torch "${presets[0]#torch-}" ;;
*) "$root/scripts/setup.sh" --hta --programs --browser --shells ;;
esac
for preset in "${presets[@]}"; do
    case $preset in
    release)
        build release
        run_tests build . "${skipped_list[@]}"
        ;;
    small)
        if [ ${#presets[@]} -eq 1 ]; then
            build small
            run_tests build-small
        else
            build small --target offprof cli_test
            run_tests build-small cli
        fi
        ;;
    *)
        build "$preset"
        run_tests "build-$preset"
        ;;
    esac
done
say "done: ${presets[*]}"
