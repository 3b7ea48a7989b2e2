#!/usr/bin/env bash
# What each placement costs and saves on the models of the zoo, and what a run takes against its simulation: every tensor that
# the placement takes has it, the others stay. Prints a table as those in docs/placements.md.
#
#   scripts/placements.sh [--device DEVICE] [--steps N] [--only ROW]... [MODEL...]
#
#   --device    host (default), or virtual:PROFILE, whose modelled times must be the simulation's to the nanosecond
#   --steps N   measured steps of each run (5)
#   --only ROW  of the table, as `recompute`: just these
#   MODEL       of the zoo, or MODEL.pt, whose input specs may lie beside it in MODEL.inputs; without any: all of the zoo
#
# About ten minutes on two cores. Leave the machine alone meanwhile: what else runs on it is measured too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac

"$root/scripts/setup.sh"
build release --target offprof offprof_engine offprof_cuda offprof_stand_ins
python3 "$root/tests/validation/placement_costs.py" --program "$root/build/offprof" --work "$root/out/placements" "$@"
