#!/usr/bin/env bash
# Trains models for real under a grid of policies and holds every run against its simulation: memory and copied bytes to
# the byte, the scheduler's commands line by line, gradients bitwise. Prints a table; exit status 1 if anything differs.
#
#   scripts/validate.sh [--device DEVICE] [MODEL.pt...]
#
#   --device    host (default), or virtual:PROFILE: there are no gradients there, but what PyTorch's allocator takes
#   MODEL.pt    models of your own, each with its input specs in MODEL.inputs or in the archive; without any: the models
#               under tests/models, and every model of the zoo
#
# The grid: 7 thresholds from 0 to above the largest saved tensor, stash 0 1 2 3 5 8 13, prefetch 0, 1 MiB and 64 MiB, and
# the presets keep, offload and trl. It takes about ten minutes on two cores, one on a virtual device.
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
