#!/usr/bin/env bash
# Installs missing packages, builds, and compares the virtual GPU with published measurements of a real one: prints
# modelled over published times and peaks by operator. docs/results/validation.md explains the table.
#
#   scripts/published.sh [--left-out] [--check]
#
#   --left-out   instead refit the constants with one operator left out at a time, and print that operator's error
#                and the ranges of modelled times; takes some minutes
#   --check      exit status 1 if a figure is outside the bounds that docs/results/validation.md states
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

left_out=0
case ${1:-} in
-h | --help) print_help && exit ;;
--left-out) left_out=1 && shift ;;
esac

"$root/scripts/setup.sh" --python
build release --target offprof offprof_engine offprof_python offprof_stand_ins
if [ "$left_out" = 1 ]; then
    exec "$python_tools/python" "$root/tests/published/leave_one_out.py" "$root/build/offprof" "$python_tools/python" \
        "$root/out/published/left-out" "$@"
fi
"$root/tests/published/compare.sh" "$root/build/offprof" "$python_tools/python" "$root/out/published" "$@"
