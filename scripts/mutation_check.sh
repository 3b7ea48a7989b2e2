#!/usr/bin/env bash
# Plants known bugs, one at a time, into a copy of the sources, and shows that the tests catch each: those of
# tests/mutations/planted.json. Prints the table that is in docs/validation.md.
#
#   scripts/mutation_check.sh [--only NAME]... [--fresh]
#
#   --only NAME   just the bug of that name
#   --fresh       forgets the results of a run that broke off; without it this run goes on after them
#
# The copy and its build stay in build-mutants. Says in the end how long it took, and which bugs took longest. Exit status: 0 each is
# caught, 1 one is not, 2 a bug does not fit the sources.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac

"$root/scripts/setup.sh"
if command -v ccache >/dev/null; then
    export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$root/build-mutants/source
fi
python3 "$root/tests/mutations/check.py" --root "$root" --work "$root/build-mutants" \
    --jobs "$(job_count "$mib_per_torch_job")" "$@"
