#!/usr/bin/env bash
# Installs missing packages, builds, and compares the virtual GPU with published measurements of a real one: prints
# modelled over published times and peaks by operator. docs/results/validation.md explains the table.
#
#   scripts/published.sh [--check]
#
#   --check   exit status 1 if a figure is outside the bounds that docs/results/validation.md states
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac

"$root/scripts/setup.sh" --python
build release --target offprof offprof_engine offprof_python offprof_stand_ins
"$root/tests/published/compare.sh" "$root/build/offprof" "$python_tools/python" "$root/out/published" "$@"
