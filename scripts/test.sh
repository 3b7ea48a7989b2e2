#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: of the small flavour its program and its command line,
# the rest of which is the same code as in the release; then all those of the release, with the engine.
#
#   scripts/test.sh [--only PRESET] [--check-skipped] [CTEST_OPTION...]
#
#   --only PRESET      only that one of the presets small, release, debug, asan, tsan, and all of its tests
#   --check-skipped    fails where the tests of `release` that are skipped are not those of tests/skipped_tests.txt
#   CTEST_OPTION       goes to ctest, for example: scripts/test.sh --only small -R traces_test
#
# A CTest entry is a test program, or a part of one. One case of it: build/tests/traces_test --gtest_filter='Units.*'
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

presets=(small release)
skipped_list=()
# A test program that hangs ends after so long.
seconds_per_test=1800

while [ $# -gt 0 ]; do
    case $1 in
    --only)
        [ $# -ge 2 ] || die 2 "--only needs a preset: small, release, debug, asan or tsan"
        case $2 in
        small | release | debug | asan | tsan) presets=("$2") ;;
        *) die 2 "no such preset: $2" "There are small, release, debug, asan and tsan." ;;
        esac
        shift 2
        ;;
    --check-skipped) skipped_list=(--check-skipped "$root/tests/skipped_tests.txt") && shift ;;
    -h | --help) print_help && exit ;;
    *) break ;;
    esac
done
ctest_options=("$@")
# As many tests as processors run at a time: a thread that spins until LibTorch has work for it takes another test's.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
# A flavour that lost all its tests must not pass; a filter of the caller's may well leave one without any.
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

if [[ ${presets[*]} =~ ^(small|tsan)$ ]]; then
    "$root/scripts/setup.sh" --small
else
    "$root/scripts/setup.sh" --hta
fi
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
