#!/usr/bin/env bash
# Builds offprof and runs the checks that need a GPU: memory, gradients, tracing, times and copies. Compares
# each result with its bound and prints a row for it. All checks together may take longer than a borrowed GPU
# is available, so they are divided into parts, each of which takes less than nine minutes. The rows of all
# parts are collected in one gpu_check.json.
#
#   scripts/gpu_check.sh --build-only
#   scripts/gpu_check.sh --no-build --part N [--out FOLDER]
#   scripts/gpu_check.sh [--device DEVICE] [--only CHECK]... [--out FOLDER] [--scratch FOLDER] [--minutes N] [--quick]
#                        [--record FOLDER] [--no-build]
#   scripts/gpu_check.sh --list
#
#   --device      cuda or cuda:N (default cuda); virtual:PROFILE tests only the script, not a GPU
#   --build-only  builds the programs for the checks, and runs no check
#   --no-build    uses the existing build
#   --part        1: the conformance suite and half of the hazards; 2: the other half, the disk; 3: a transformer;
#                 4: a llama; 5: a resnet; 6: comparison with TRL's rules, compute-sanitizer
#   --only        the name of a check, or a pattern for several: 'memory-*'
#   --list        prints the checks, with their part and their time limit in seconds
#   --out         folder for gpu_check.json, table.md, log.txt and small traces (default out/gpu_check): at most
#                 8 files of at most 4 MiB. Existing rows are kept, unless another device produced them
#   --scratch     folder for models, large traces and the disk tier's file (default build/gpu_check)
#   --minutes     time limit for all checks; a check that is still running is killed, and its row says so
#                 (default 8.5)
#   --quick       small models and few settings, for a quick test of the script
#   --record      folder for a second copy of the rows without user names, host names and paths, to be committed
#
# Builds with the PyTorch of python3 if offprof supports its version and its CUDA libraries are there, else with the
# LibTorch that scripts/setup.sh installs. On a machine without network, uses the libraries that scripts/carry.sh
# unpacked into the checkout on another machine.
#
# Exit status: 0 all bounds are met; 1 a bound is not met, or a check failed or did not finish; 2 bad usage; 3
# the machine lacks something. docs/results/validation.md explains the rows.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# the programs that the checks run, including the virtual GPU
targets=(offprof offprof_engine offprof_cuda offprof_stand_ins device_conformance_test hazards_test)
out=$root/out/gpu_check
scratch=$root/build/gpu_check
device=cuda
build=true
check=true
options=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) print_help && exit ;;
    --list) exec python3 "$root/tests/gpu/gpu_check.py" --list ;;
    --device) device=${2:?} && shift 2 ;;
    --out) out=${2:?} && shift 2 ;;
    --scratch) scratch=${2:?} && shift 2 ;;
    --only | --part | --minutes | --record) options+=("$1" "${2:?}") && shift 2 ;;
    --quick) options+=(--quick) && shift ;;
    --build-only) check=false && shift ;;
    --no-build) build=false && shift ;;
    *) die 2 "no such option: $1" "see scripts/gpu_check.sh --help" ;;
    esac
done
$build || $check || die 2 "--build-only and --no-build together leave nothing to do"

# Prints the folder of python3's PyTorch if it contains all files for building and for running on a GPU.
python_libtorch() {
    python3 - "$root/cmake/torch_versions.txt" <<'PYTHON' 2>/dev/null
import importlib.metadata, pathlib, sys
torch = importlib.metadata.distribution("torch")
site = pathlib.Path(torch.locate_file(""))
needed = ["torch/lib/libtorch_cuda.so", "torch/include/torch/csrc/api/include/torch/torch.h",
          "nvidia/cu13/include/cuda_runtime_api.h", "nvidia/cu13/include/cupti.h", "nvidia/cu13/lib/libcudart.so.13",
          "nvidia/cu13/lib/libcublas.so.13"]
rows = [line for line in pathlib.Path(sys.argv[1]).read_text().splitlines() if line[:1].isdigit()]
supported = [row.split()[0].rpartition(".")[0] for row in rows]
if ".".join(torch.version.split(".")[:2]) not in supported or not all((site / file).exists() for file in needed):
    sys.exit(1)
print(site)
PYTHON
}

# build_with FOLDER: builds with the PyTorch in the folder. Omits benchmarks, which need another library, and does
# not treat warnings as errors, since the compiler may be another one.
build_with() {
    local options=(-DOFFPROF_LIBTORCH_DIR="$1" -DOFFPROF_BUILD_BENCHMARKS=OFF -DOFFPROF_WERROR=OFF)
    if [ -d "$carried_dir" ]; then
        options+=(-DCMAKE_PREFIX_PATH="$carried_dir/usr")
    else
        "$root/scripts/setup.sh" --small
    fi
    configure release "${options[@]}"
    (cd "$root" && cmake --build --preset release --parallel "$(job_count "$mib_per_torch_job")" --target "${targets[@]}")
}

if $build && [[ $device == cuda* ]] && site=$(python_libtorch); then
    say "building with the PyTorch in $site"
    build_with "$site"
elif $build; then
    "$root/scripts/setup.sh"
    build release --target "${targets[@]}"
    if [[ $device == cuda* ]] && [ ! -e "$root/.deps/libtorch/nvidia/cu13/lib/libcublas.so.13" ]; then
        say "LibTorch in .deps/libtorch has no CUDA libraries; if the checks do not find them, run this script again" \
            "after: python3 -m pip install torch"
    fi
fi
$check || exit 0
commit=$(git -C "$root" -c safe.directory="$root" describe --always --dirty 2>/dev/null || echo unknown)
exec python3 "$root/tests/gpu/gpu_check.py" --program "$root/build/offprof" --build "$root/build" --device "$device" \
    --out "$out" --scratch "$scratch" --commit "$commit" "${options[@]}"
