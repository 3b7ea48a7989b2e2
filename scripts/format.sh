#!/usr/bin/env bash
# Formats all C++ files with the settings of .clang-format, and all Python files with those of pyproject.toml.
#
#   scripts/format.sh [--check]
#
#   --check    changes nothing; exit status 1 if a file is not formatted
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The version is fixed, since other versions format differently.
formatter=(clang-format-14 --style=file)
case ${1:-} in
'') mode=(-i) python_mode=() ;;
--check) mode=(--dry-run -Werror) python_mode=(--check) ;;
-h | --help) print_help && exit ;;
*) die 2 "unknown argument: $1" "see scripts/format.sh --help" ;;
esac

"$root/scripts/setup.sh" --small --lint
cd "$root"
formatted=true
source_files '*.h' '*.cpp' | xargs -0 -r "${formatter[@]}" "${mode[@]}" || formatted=false
source_files '*.py' | xargs -0 -r "$python_tools/ruff" format --quiet "${python_mode[@]}" -- || formatted=false
$formatted || die 1 "some files are not formatted" "Run scripts/format.sh"
say "format: done"
