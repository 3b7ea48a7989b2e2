#!/usr/bin/env bash
# Writes the unimplemented part of a stand-in library: for each function that LibTorch uses from the real library and
# that no object file defines, a function that records its name and returns success.
#
#   make_stubs.sh UNDEFINED NODE PATTERN STUBS.cpp VERSIONS.map [OBJECT]...
#
# UNDEFINED lists LibTorch's undefined symbols, one per line, as nm prints them: `cudaMalloc@libcudart.so.13`. The library
# has the symbols with the version NODE, and those without a version whose name matches PATTERN, an extended regular
# expression: some real libraries have no versions.
set -euo pipefail

undefined=$1 node=$2 pattern=$3 stubs=$4 versions=$5
shift 5

wanted() {
    awk -F@ -v node="$node" -v pattern="^($pattern)" \
        '$2 == node || (NF == 1 && $1 ~ pattern) { print $1 }' "$undefined" | sort -u
}

written() {
    if [ $# -gt 0 ]; then
        nm --defined-only "$@" | awk 'NF == 3 && $2 == "T" { print $3 }' | sort -u
    fi
}

{
    echo 'extern "C" {'
    echo 'long offprof_unwritten(const char* function);'
    comm -23 <(wanted) <(written "$@") | while read -r function; do
        echo "long $function() { return offprof_unwritten(\"$function\"); }"
    done
    echo '}'
} >"$stubs"

echo "$node { global: cu*; __cu*; nccl*; nvml*; nvrtc*; nvshmem*; local: *; };" >"$versions"
