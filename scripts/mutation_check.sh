#!/usr/bin/env bash
# Mutation testing: inserts the known bugs of tests/mutations/planted.json into a copy of the sources, one at
# a time, and checks that the tests catch each of them. Prints the table that is in docs/results/validation.md.
#
#   scripts/mutation_check.sh [--only NAME]... [--fresh]
#
#   --only NAME   runs only the mutation of that name
#   --fresh       discards the results of an interrupted run; by default the script continues that run
#
# The copy and its build stay in build-mutants. Prints at the end how long the run took, and which mutations
# took longest. Exit status: 0 all mutations are caught, 1 one is not, 2 a mutation does not fit the sources.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac

"$root/scripts/setup.sh"
if command -v ccache >/dev/null; then
    export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$root/build-mutants/source
fi
python3 "$root/tests/mutations/check.py" --root "$root" --work "$root/build-mutants" \
    --jobs "$(job_count "$mib_per_torch_job")" "$@"
