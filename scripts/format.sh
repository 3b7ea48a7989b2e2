#!/usr/bin/env bash
# Formats every C++ file as .clang-format says.
#
#   scripts/format.sh [--check]
#
#   --check    changes nothing; exit status 1 where a file is not formatted
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Another version of it would format otherwise.
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
