#!/usr/bin/env bash
# Measures the cost and the savings of each placement on the zoo's models, and compares each run with its
# simulation. Every tensor that supports the placement gets it; the others stay on the device. Prints tables
# like those in docs/results/benchmarks.md.
#
#   scripts/placements.sh [--device DEVICE] [--steps N] [--only ROW]... [MODEL...]
#
#   --device    host (default), or virtual:PROFILE, whose modelled times must equal the simulation's to the
#               nanosecond
#   --steps N   measured steps of each run (default 5)
#   --only ROW  measures only this row of the table, for example `recompute`
#   MODEL       a model of the zoo, or MODEL.pt, whose input specs may be in MODEL.inputs beside it; default: all
#               models of the zoo
#
# Takes about ten minutes on two cores. Leave the machine idle meanwhile, since other load affects the
# measurements.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac

"$root/scripts/setup.sh"
build release --target offprof offprof_engine offprof_cuda offprof_stand_ins
python3 "$root/tests/validation/placement_costs.py" --program "$root/build/offprof" --work "$root/out/placements" "$@"
