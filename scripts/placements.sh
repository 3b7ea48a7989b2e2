#!/usr/bin/env bash
# What each placement costs and saves on the models of the zoo, measured on the host device: every tensor that the placement
# takes has it, the others stay. Prints the table that is in docs/placements.md.
#
#   scripts/placements.sh [--steps N] [MODEL...]
#
#   --steps N   measured steps of each run (5)
#   MODEL       of the zoo; without any: all of them
#
# About ten minutes on two cores. Leave the machine alone meanwhile: what else runs on it is measured too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac

"$root/scripts/setup.sh"
build release --target offprof offprof_engine
python3 "$root/tests/validation/placement_costs.py" --program "$root/build/offprof" --work "$root/out/placements" "$@"
