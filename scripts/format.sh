#!/usr/bin/env bash
# Formats all C++ files with the settings of .clang-format.
#
#   scripts/format.sh [--check]
#
#   --check    changes nothing; exit status 1 if a file is not formatted
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The version is fixed, since other versions format differently.
formatter=(clang-format-14 --style=file)
case ${1:-} in
'') mode=(-i) ;;
--check) mode=(--dry-run -Werror) ;;
-h | --help) print_help && exit ;;
*) die 2 "unknown argument: $1" "see scripts/format.sh --help" ;;
esac

"$root/scripts/setup.sh" --small --lint
cd "$root"
if source_files '*.h' '*.cpp' | xargs -0 -r "${formatter[@]}" "${mode[@]}"; then
    say "format: done"
else
    die 1 "some files are not formatted" "Run scripts/format.sh"
fi
