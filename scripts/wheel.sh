#!/usr/bin/env bash
# Builds a wheel of offprof for a Python that has torch, against that torch.
#
#   scripts/wheel.sh [--python PYTHON] [--output DIR]
#
#   --python PYTHON   Python with torch (default: python3)
#   --output DIR      folder for the wheel (default: dist)
#
# Needs no root, and the network only for pip, which installs scikit-build-core. The libraries of
# docs/how-to/install.md have to be there. Exit status: 0 the wheel is built, 1 it does not build, 2 bad usage,
# 3 the Python has no torch.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

python=python3
output=$root/dist
while [ $# -gt 0 ]; do
    case $1 in
    --python | --output)
        [ $# -ge 2 ] || die 2 "$1 needs a value"
        if [ "$1" = --python ]; then python=$2; else output=$2; fi
        shift
        ;;
    -h | --help) print_help && exit ;;
    *) die 2 "unknown argument: $1" "see scripts/wheel.sh --help" ;;
    esac
    shift
done
"$python" -c 'import importlib.util as util, sys; sys.exit(util.find_spec("torch") is None)' ||
    die 3 "$python has no torch" "Install it: $python -m pip install 'torch==2.11.*'"
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(job_count "$mib_per_torch_job")}
if command -v ccache >/dev/null; then
    CMAKE_CXX_COMPILER_LAUNCHER="env;CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_BASEDIR=$root;ccache"
    export CMAKE_CXX_COMPILER_LAUNCHER
fi
"$python" -m pip wheel --no-deps --disable-pip-version-check --wheel-dir "$output" "$root"
