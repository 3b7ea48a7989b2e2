#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: of the small flavour its program and its command line,
# the rest of which is the same code as in the release; then all those of the release, with the engine.
#
#   scripts/test.sh [--only PRESET] [CTEST_OPTION...]
#
#   --only PRESET    just that one of the presets small, release, debug, asan, tsan, and all of its tests
#   CTEST_OPTION     goes to ctest, for example: scripts/test.sh --only small -R Policy
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

presets=(small release)
# A test that hangs ends after so long.
seconds_per_test=900

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
    -h | --help) print_help && exit ;;
    *) break ;;
    esac
done
ctest_options=("$@")
# As many tests as processors run at a time: a thread that spins until LibTorch has work for it takes another test's.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
# A flavour that lost all its tests must not pass; a filter of the caller's may well leave one without any.
if [ $# -eq 0 ]; then ctest_options=(--no-tests=error); fi

run_tests() {  # FOLDER
    say "testing $1"
    (cd "$root" && ctest --test-dir "$1" --output-on-failure --parallel "$(job_count)" \
        --timeout "$seconds_per_test" "${ctest_options[@]}")
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
        run_tests build
        ;;
    small)
        if [ ${#presets[@]} -eq 1 ]; then
            build small
            run_tests build-small
        else
            build small --target offprof cli_test
            run_tests build-small/cli
        fi
        ;;
    *)
        build "$preset"
        run_tests "build-$preset"
        ;;
    esac
done
say "done: ${presets[*]}"
