#!/usr/bin/env bash
# Runs checks beyond the compiler's: shellcheck on the scripts, ruff and mypy on the Python files, codespell on all
# text, how comments begin, the dependencies of folders against their includes, compilation of each header on its
# own, and clang-tidy on the small flavour without its tests. (With LibTorch's headers clang-tidy takes minutes per
# file; the tests would take as long as all the rest.)
#
#   scripts/lint.sh [scripts|python|spelling|comments|layers|headers|torch-headers|tidy]...
#
#   headers        those that do not include LibTorch's
#   torch-headers  the others, which take seconds each
#
# Without arguments, runs all checks but torch-headers. Exit status 1 if any of them reports a problem.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac
checks=("$@")
if [ $# -eq 0 ]; then checks=(scripts python spelling comments layers headers tidy); fi

# Intended misspellings in tests of suggestions; `upto`, an identifier; and Mattern, a person.
misspelt_on_purpose=transfromer,veiw,nam,upto,mattern
camel_case='\b[A-Z][a-z0-9]+[A-Z][A-Za-z0-9]*'

lint_tidy() {
    # Uses the unity sources of the build: twelve joined files take hardly longer than one, since most of the time
    # goes into headers.
    configure small -B build-lint -DOFFPROF_BUILD_TESTS=OFF
    scripts/run_clang_tidy.py build-lint --jobs "$(job_count)"
}

# Prints the options for the folders of LibTorch's, CUDA's and Python's headers; nothing if setup has not installed
# LibTorch.
torch_options() {
    local dir
    for dir in torch/include torch/include/torch/csrc/api/include nvidia/cu13/include; do
        if [ -d ".deps/libtorch/$dir" ]; then printf -- '-idirafter .deps/libtorch/%s ' "$dir"; fi
    done
    if [ -d .deps/libtorch/torch ]; then printf -- '-idirafter /usr/include/python3.11 '; fi
}

# LibTorch's headers, which take most of the time to compile, are compiled once. So a header that lacks only an
# include of LibTorch goes unnoticed here.
torch_headers=build-lint/headers/torch_precompiled.h
warnings="-std=c++20 -Wall -Wextra -Wpedantic -Werror"

precompile_torch() {
    local options=()
    read -r -a options <<<"$warnings -I. $(torch_options)"
    mkdir -p "$(dirname "$torch_headers")"
    printf '#include "engine/torch/torch_precompiled.h"\n' >"$torch_headers"
    g++ "${options[@]}" -x c++-header "$torch_headers" -o "$torch_headers.gch"
}

# compile_header HEADER: compiles a source that only includes the header. Writes an object, which ccache can cache.
compile_header() {
    local source=build-lint/headers/${1%.h}.cpp
    mkdir -p "$(dirname "$source")"
    printf '#include "%s"\n' "$1" >"$source"
    # shellcheck disable=SC2086  # these are several words
    if ! $compiler $header_options -I. -c "$source" -o "${source%.cpp}.o"; then
        echo "does not compile alone: $1"
        return 1
    fi
}

# compile_headers OPTION...: compiles each header of standard input with the compiler options.
compile_headers() {
    compiler=g++
    if command -v ccache >/dev/null; then compiler="env CCACHE_BASEDIR=$root ccache g++"; fi
    header_options="$warnings $*"
    export -f compile_header
    export compiler header_options
    # shellcheck disable=SC2016  # the inner shell expands it
    xargs -r -n 1 -P "$(job_count)" bash -c 'compile_header "$1"' compile_header
}

all_headers() {
    source_files '*.h' | tr '\0' '\n'
}

lint_headers() {
    all_headers | grep -xF -f <(scripts/check_layers.py --torch-free) | compile_headers
}

lint_torch-headers() {
    if [ -z "$(torch_options)" ]; then die 3 "LibTorch is not installed" "Run scripts/setup.sh."; fi
    rm -f "$torch_headers.gch"
    precompile_torch
    # shellcheck disable=SC2046  # these are several words
    all_headers | grep -vxF -f <(scripts/check_layers.py --torch-free) | compile_headers -include "$torch_headers" $(torch_options)
}

lint_layers() {
    scripts/check_layers.py
}

lint_comments() {
    scripts/check_comments.py
}

lint_scripts() {
    source_files '*.sh' .ci/run | xargs -0 -r shellcheck --external-sources --source-path=SCRIPTDIR
}

# pyproject.toml has the settings. mypy takes the two groups of files one after the other, since both have modules of
# the same name.
lint_python() {
    local status=0
    source_files '*.py' | xargs -0 "$python_tools/ruff" check --quiet -- || status=1
    source_files 'python/*.py' | xargs -0 -r "$python_tools/mypy" --no-error-summary -- || status=1
    source_files '*.py' ':!python' | xargs -0 "$python_tools/mypy" --no-error-summary -- || status=1
    return "$status"
}

lint_spelling() {
    source_files '*.h' '*.cpp' '*.md' '*.sh' '*.py' '*.cmake' '*CMakeLists.txt' '*.json' .ci/run |
        xargs -0 -r codespell --ignore-words-list "$misspelt_on_purpose" --ignore-regex "$camel_case"
}

"$root/scripts/setup.sh" --small --lint
cd "$root"
failed=()
for check in "${checks[@]}"; do
    case $check in
    tidy | headers | torch-headers | layers | comments | python | scripts | spelling) ;;
    *) die 2 "no such check: $check" "See scripts/lint.sh --help." ;;
    esac
    say "lint: $check"
    "lint_$check" || failed+=("$check")
done
[ ${#failed[@]} -eq 0 ] || die 1 "failed: ${failed[*]}"
say "lint: done"
