#!/usr/bin/env bash
# What only a GPU can prove: builds, then checks memory, gradients, tracing, times and copies on it, each against its bound, and
# prints a row for each. Within 8 minutes after the build. A machine without network builds with what scripts/carry.sh
# unpacked into the checkout elsewhere.
#
#   scripts/gpu_check.sh [--device DEVICE] [--out FOLDER] [--minutes N] [--quick] [--no-build]
#
#   --device    cuda, cuda:N (cuda); virtual:PROFILE shows that the script works, and nothing of a GPU
#   --out       where gpu_check.json, table.md and the traces go (out/gpu_check)
#   --minutes   no check is begun after that many (8)
#   --quick     small models and few settings: whether it works at all
#   --no-build  what was built is taken as it is
#
# Exit status: 0 no bound is missed, 1 one is, or a check failed. docs/validation.md says what the rows mean.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

out=$root/out/gpu_check
device=cuda
build=true
options=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) print_help && exit ;;
    --device) device=${2:?} && shift 2 ;;
    --out) out=${2:?} && shift 2 ;;
    --minutes) options+=(--minutes "${2:?}") && shift 2 ;;
    --quick) options+=(--quick) && shift ;;
    --no-build) build=false && shift ;;
    *) die 2 "no such option: $1" "see scripts/gpu_check.sh --help" ;;
    esac
done

# Where there is neither network nor LibTorch of ours: with what was carried here, and the PyTorch of python3.
build_of_carried() {
    local site
    site=$(python3 -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])') ||
        die 3 "python3 has no PyTorch, whose LibTorch it could be built with" "Carry .deps/libtorch along, or install it."
    configure release -DCMAKE_PREFIX_PATH="$carried_dir/usr" -DOFFPROF_LIBTORCH_DIR="$site" \
        -DOFFPROF_BUILD_BENCHMARKS=OFF -DOFFPROF_WERROR=OFF
    (cd "$root" && cmake --build --preset release --parallel "$(job_count "$mib_per_torch_job")")
}

if $build && [ -d "$carried_dir" ] && [ ! -d "$root/.deps/libtorch" ]; then
    build_of_carried
elif $build; then
    "$root/scripts/setup.sh"
    build release
fi
python3 "$root/tests/gpu/gpu_check.py" --program "$root/build/offprof" --build "$root/build" --device "$device" --out "$out" \
    "${options[@]}"
