#!/usr/bin/env bash
# Installs missing packages, builds, and compares the virtual GPU with published measurements of a real one: prints
# modelled over published times and peaks by operator. docs/results/validation.md explains the table.
#
#   scripts/published.sh [--held-out | --left-out | --measured | --models] [--check]
#
#   --held-out   instead compare operators and cards that no constant was fitted to; takes a minute
#   --left-out   instead refit the constants with one operator left out at a time, and print that operator's error
#                and the ranges of modelled times; takes some minutes
#   --measured   instead compare with kernels that were measured on an H100 (traces/recorded/h100); takes a minute
#   --models     instead compare steps of whole models with those on an H100; takes a minute
#   --check      exit status 1 if a figure is outside the bounds that docs/results/validation.md states
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

comparison=fitted
case ${1:-} in
-h | --help) print_help && exit ;;
--held-out | --left-out | --measured | --models) comparison=${1#--} && shift ;;
esac

needed=(--python)
if [ "$comparison" = models ]; then needed+=(--programs); fi
"$root/scripts/setup.sh" "${needed[@]}"
build release --target offprof offprof_engine offprof_python offprof_stand_ins
published=$root/tests/published offprof=$root/build/offprof python=$python_tools/python
case $comparison in
fitted) "$published/compare.sh" "$offprof" "$python" "$published/liger_a100.csv" a100-80gb "$root/out/published" "$@" ;;
held-out) "$published/held_out.sh" "$offprof" "$python" "$root/out/published/held-out" "$@" ;;
measured)
    "$published/compare.sh" "$offprof" "$python" "$root/traces/recorded/h100/kernels.csv" h100-80gb \
        "$root/out/published/measured" "$@"
    ;;
models)
    modelled=$root/out/published/models.csv
    mkdir -p "$(dirname "$modelled")"
    "$offprof" exec --device virtual:h100-80gb -- "$python" "$published/measure_models.py" "$modelled"
    "$python" "$published/report_models.py" "$modelled" "$root/traces/recorded/h100/models.csv" "$@"
    ;;
left-out) "$python" "$published/leave_one_out.py" "$offprof" "$python" "$root/out/published/left-out" "$@" ;;
esac
