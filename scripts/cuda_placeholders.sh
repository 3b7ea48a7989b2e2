#!/usr/bin/env bash
# Builds placeholders for the CUDA libraries that LibTorch links and that FOLDER lacks, so that `import torch` works
# without NVIDIA's packages (several gigabytes). torch then finds no GPU and computes on the CPU. A placeholder has
# the symbols that LibTorch needs; a call of one prints its name and aborts.
#
#   scripts/cuda_placeholders.sh TORCH_LIBRARIES FOLDER
#
# TORCH_LIBRARIES is the folder with LibTorch's libraries; FOLDER is one where they look for CUDA's.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac
[ $# -eq 2 ] || die 2 "needs the folder of LibTorch's libraries and a folder to write to" "see scripts/cuda_placeholders.sh --help"
torch_libraries=("$1"/lib*.so)
folder=$2

# Leaves out the driver's library: torch loads it only to use a GPU.
cuda_libraries() {
    LC_ALL=C readelf -d "${torch_libraries[@]}" | sed -n 's/.*(NEEDED).*\[\(lib\(cu\|nccl\|nv\).*\)\]/\1/p' |
        grep -v '^libcuda\.' | sort -u
}

# versions_of LIBRARY: the symbol versions that LibTorch requires of it.
versions_of() {
    LC_ALL=C objdump -p "${torch_libraries[@]}" | awk -v library="$1:" '
        /required from/ { wanted = $3 == library; next }
        wanted && $1 ~ /^0x/ { print $4; next }
        { wanted = 0 }' | sort -u
}

# Undefined symbols as nm prints them: `cublasCreate_v2@libcublas.so.13`, or without a version.
undefined_symbols() {
    LC_ALL=C nm -D --undefined-only --with-symbol-versions "${torch_libraries[@]}" | awk 'NF == 2 { print $2 }' |
        grep -E '^(cu|nccl|nvrtc|nvshmem)' | sort -u
}

# write_source VERSION: the functions with this version; for the empty version those without one.
write_source() {
    cat <<'SOURCE'
#include <stdio.h>
#include <stdlib.h>
#define PLACEHOLDER(name)                                                                \
    void name(void) {                                                                    \
        fputs(#name " was called, but this Python has no NVIDIA libraries\n", stderr); \
        abort();                                                                         \
    }
SOURCE
    awk -F @ -v version="$1" '$2 == version { print "PLACEHOLDER(" $1 ")" }' <<<"$symbols"
}

# build_placeholder LIBRARY
build_placeholder() {
    local version options=()
    version=$(versions_of "$1")
    if [ -n "$version" ]; then
        echo "$version { global: cu*; nccl*; nvrtc*; nvshmem*; local: *; };" >"$scratch/versions"
        options=("-Wl,--version-script,$scratch/versions")
    fi
    write_source "$version" >"$scratch/source.c"
    gcc -shared -fPIC -Wno-builtin-declaration-mismatch "-Wl,-soname,$1" "${options[@]}" -o "$folder/$1" "$scratch/source.c"
}

scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
symbols=$(undefined_symbols)
for library in $(cuda_libraries); do
    if [ ! -e "$folder/$library" ]; then build_placeholder "$library"; fi
done
