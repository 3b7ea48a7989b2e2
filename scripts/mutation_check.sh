#!/usr/bin/env bash
# Mutation testing: inserts the known bugs of tests/mutations/planted.json into a copy of the sources, one at
# a time, and checks that the tests catch each of them. Prints a table of all mutations at the end: caught by
# which test, survived, or not run; how long all of them took; and which took longest.
#
#   scripts/mutation_check.sh [--part I/N] [--only NAME]... [--results FILE] [--fresh]
#   scripts/mutation_check.sh --fits
#
#   --part I/N      runs part I of N, such as 2/8; the table has the results of earlier parts as well
#   --only NAME     runs only the mutation of that name
#   --results FILE  keeps the results there (default: build-mutants/results.jsonl)
#   --fresh         discards earlier results
#   --fits          only checks, in a second, that each mutation fits the sources and that its tests exist
#
# Each result is written at once, and a later run continues after the last one, until a source changes. The
# copy of the sources and its build stay in build-mutants. Exit status: 0 all mutations that were to run are
# caught, 1 one is not, 2 a mutation does not fit the sources.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac

check=(python3 "$root/tests/mutations/check.py" --root "$root")
if [ "${1:-}" = --fits ]; then exec "${check[@]}" --fits; fi

"$root/scripts/setup.sh"
if command -v ccache >/dev/null; then
    export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$root/build-mutants/source
fi
"${check[@]}" --work "$root/build-mutants" --jobs "$(job_count "$mib_per_torch_job")" "$@"
