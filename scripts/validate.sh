#!/usr/bin/env bash
# Trains models under a grid of policies and compares every run with its simulation: memory and copied bytes
# exactly, the scheduler's commands line by line, gradients bitwise. Prints a table. Exit status 1 if anything
# differs.
#
#   scripts/validate.sh [--device DEVICE] [MODEL.pt...]
#
#   --device    host (default), or virtual:PROFILE, which compares the memory of PyTorch's allocator, but no gradients
#   MODEL.pt    your own models, each with its input specs in MODEL.inputs or in the archive; default: the models in
#               tests/models, and every model of the zoo
#
# The grid: 7 thresholds from 0 to above the largest saved tensor, stash 0 1 2 3 5 8 13, prefetch 0, 1 MiB and
# 64 MiB, and the presets keep, offload and trl. Takes about ten minutes on two cores, or one on a virtual
# device.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

device=host
case ${1:-} in
-h | --help) print_help && exit ;;
--device) device=${2:?} && shift 2 ;;
-*) die 2 "no such option: $1" "see scripts/validate.sh --help" ;;
esac

"$root/scripts/setup.sh"
build release --target offprof_engine offprof_cuda offprof_stand_ins validate
if [ $# -gt 0 ]; then
    "$root/build/validate" --device "$device" --full "$@"
else
    mkdir -p "$root/out/validation"
    "$root/build/validate" --device "$device" --full "$root"/tests/models/*.pt --zoo "$root/out/validation"
fi
