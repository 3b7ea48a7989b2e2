#!/usr/bin/env bash
# Builds a wheel of offprof for a Python that has torch, against that torch. Or makes a source distribution, of which
# pip builds such wheels on other machines.
#
#   scripts/wheel.sh [--python PYTHON] [--output DIR] [--sources]
#
#   --python PYTHON   Python with torch (default: python3)
#   --output DIR      folder for the wheel (default: dist)
#   --sources         makes a source distribution, with the libraries that the build needs (scripts/carry.sh); this
#                     Python needs no torch
#
# Needs no root, and the network only for pip, which installs scikit-build-core, and for carry.sh. The build takes
# libraries of the system or, where it has none, those of .deps/carried. Exit status: 0 the wheel is built, 1 it does
# not build, 2 bad usage, 3 the Python has no torch.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

python=python3
output=$root/dist
sources=false
while [ $# -gt 0 ]; do
    case $1 in
    --python | --output)
        [ $# -ge 2 ] || die 2 "$1 needs a value"
        if [ "$1" = --python ]; then python=$2; else output=$2; fi
        shift
        ;;
    --sources) sources=true ;;
    -h | --help) print_help && exit ;;
    *) die 2 "unknown argument: $1" "see scripts/wheel.sh --help" ;;
    esac
    shift
done
if $sources; then
    [ -d "$carried_dir" ] || "$root/scripts/carry.sh"
    backend=$(mktemp -d)
    trap 'rm -rf -- "$backend"' EXIT
    "$python" -m pip install --quiet --disable-pip-version-check --target "$backend" 'scikit-build-core>=1.1'
    cd "$root"
    PYTHONPATH=$backend "$python" -c \
        'import scikit_build_core.build as backend, sys; print(backend.build_sdist(sys.argv[1]))' "$output"
    exit
fi
"$python" -c 'import importlib.util as util, sys; sys.exit(util.find_spec("torch") is None)' ||
    die 3 "$python has no torch" "Install it: $python -m pip install 'torch==2.11.*'"
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(job_count "$mib_per_torch_job")}
if command -v ccache >/dev/null; then
    CMAKE_CXX_COMPILER_LAUNCHER="env;CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_BASEDIR=$root;ccache"
    export CMAKE_CXX_COMPILER_LAUNCHER
fi
"$python" -m pip wheel --no-deps --disable-pip-version-check --wheel-dir "$output" "$root"
