#!/usr/bin/env bash
# Builds the documentation site, build/site. Broken links and anchors fail.
#
#   scripts/docs.sh [--program OFFPROF]
#
#   --program OFFPROF    takes the command reference from this program (build/offprof, which is built if it is missing)
#
# Installs MkDocs into .deps/mkdocs if it is missing. Exit status: 0 the site is built, 1 the site has an error, 2 bad usage,
# 3 something is missing and cannot be installed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mkdocs_packages=(mkdocs==1.6.1)
mkdocs_dir=$root/.deps/mkdocs
# MkDocs reads the pages from here: docs/ and the generated page.
source_dir=$root/build/docs
program=

while [ $# -gt 0 ]; do
    case $1 in
    --program)
        [ $# -ge 2 ] || die 2 "--program needs a path"
        program=$(realpath -- "$2") && shift 2
        ;;
    -h | --help) print_help && exit ;;
    *) die 2 "unknown argument: $1" "see scripts/docs.sh --help" ;;
    esac
done

# The packages are bound to the Python that installed them.
mkdocs_stamp() { python3 --version && printf '%s\n' "${mkdocs_packages[@]}"; }

install_mkdocs() {
    local beside=$mkdocs_dir.tmp.$$
    [ "$(cat "$mkdocs_dir/offprof-stamp" 2>/dev/null)" != "$(mkdocs_stamp)" ] || return 0
    python3 -m pip --version >/dev/null 2>&1 || die 3 "python3 has no pip, which installs MkDocs" "apt-get install python3-pip"
    say "installing MkDocs into $mkdocs_dir"
    rm -rf -- "$mkdocs_dir" "$mkdocs_dir".tmp.*
    python3 -m pip install -q --target "$beside" --no-cache-dir --no-input --no-warn-conflicts --disable-pip-version-check \
        --root-user-action ignore "${mkdocs_packages[@]}" </dev/null >&2 ||
        die 3 "pip could not install MkDocs; the reason is above" "Check the network, then run this again."
    mkdocs_stamp >"$beside/offprof-stamp"
    mv -T -- "$beside" "$mkdocs_dir"
}

# The small flavour has the same command line, and needs no LibTorch.
find_program() {
    if [ -n "$program" ]; then return; fi
    program=$root/build/offprof
    if [ -x "$program" ]; then return; fi
    "$root/scripts/setup.sh" --small
    build small --target offprof
    program=$root/build-small/offprof
}

# The names of the commands, in the order of `offprof --help`.
command_names() {
    "$program" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\)  .*/\1/p'
}

# help_of ARGUMENT...: a code block with the help of a command.
help_of() {
    # shellcheck disable=SC2016  # the backticks are Markdown
    printf '```text\n%s\n```\n\n' "$("$program" "$@" --help)"
}

# The whole page, as Markdown.
command_reference() {
    local name
    printf '# Commands and flags\n\n'
    # shellcheck disable=SC2016  # the backticks are Markdown
    printf 'This page is the output of `offprof COMMAND --help`, version %s. ' "$("$program" --version | sed 's/^offprof //')"
    printf 'The [command line](command-line.md) page describes what all commands share.\n\n'
    printf '## offprof\n\n'
    help_of
    for name in $(command_names); do
        printf '## offprof %s\n\n' "$name"
        help_of "$name"
        if [ "$name" = zoo ]; then
            printf '### offprof zoo make\n\n'
            help_of zoo make
        fi
    done
}

find_program
install_mkdocs
rm -rf -- "$source_dir"
mkdir -p "$source_dir"
cp -r -- "$root/docs" "$root/mkdocs.yml" "$source_dir"
command_reference >"$source_dir/docs/reference/commands.md"
PYTHONPATH=$mkdocs_dir python3 -m mkdocs build --strict --clean \
    --config-file "$source_dir/mkdocs.yml" --site-dir "$root/build/site" || die 1 "the documentation has errors, which are above"
say "documentation: build/site/index.html"
