#!/usr/bin/env bash
# Unpacks the libraries that offprof is built with into .deps/carried. This is for a machine with a compiler,
# cmake, ninja and PyTorch, but without network. Copy the checkout with this folder to that machine; there
# scripts/gpu_check.sh builds with these libraries.
#
#   scripts/carry.sh
#
# Installs nothing. Exit status: 0 all libraries are unpacked, 3 a package could not be downloaded.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in -h | --help) print_help && exit ;; esac
[ $# -eq 0 ] || die 2 "unknown argument: $1" "see scripts/carry.sh --help"

# depends_of PACKAGE...: prints the libraries that the packages depend on, without those that every machine with a
# compiler has, and without the solver's, which is opened only if it is there.
depends_of() {
    LC_ALL=C apt-cache depends --no-recommends --no-suggests "$@" | sed -n 's/.*Depends: //p' |
        grep -E '^(lib|googletest|zlib1g|coinor-.*-dev)' | grep -vE '^lib(c6|c-dev|gcc|stdc)' | sort -u
}

# Prints the packages that the build needs, the libraries that they depend on, and those that these depend on.
packages() {
    local build libraries
    mapfile -t build < <(library_packages | cut -d ' ' -f 1)
    mapfile -t libraries < <(depends_of "${build[@]}")
    printf '%s\n' "${build[@]}" "${libraries[@]}"
    mapfile -t libraries < <(printf '%s\n' "${libraries[@]}" | grep -v -e '-dev$')
    depends_of "${libraries[@]}"
}

# Redirects absolute symbolic links to the unpacked files in the folder.
link_within() {
    local link
    find "$1" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
        ln -sfrn -- "$1$(readlink "$link")" "$link"
    done
}

beside=$carried_dir.tmp.$$
trap 'rm -rf -- "$beside"' EXIT
mkdir -p "$beside/archives"
# As root, apt-get downloads as another user who may not write here. It prints a warning and continues as root.
(cd "$beside/archives" && packages | sort -u | xargs apt-get -qq download 2>"$beside/log") ||
    die 3 "apt-get could not download the packages: $(cat "$beside/log")" "Update the package lists (apt-get update), then run this script again."
for archive in "$beside"/archives/*.deb; do dpkg -x "$archive" "$beside/unpacked"; done
# The build needs only the headers of Clp and of its dependencies.
rm -rf -- "$beside/unpacked/usr/share/doc" "$beside"/unpacked/usr/lib/*/lib{Clp,Coin,Osi}*
link_within "$beside/unpacked"
rm -rf -- "$carried_dir"
mv -T -- "$beside/unpacked" "$carried_dir"
say "$carried_dir: $(du -sh "$carried_dir" | cut -f 1)"
