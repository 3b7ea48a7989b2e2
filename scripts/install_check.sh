#!/usr/bin/env bash
# Builds the wheel and the Debian package, installs both on bare Debian 12, a chroot that debootstrap makes, and runs
# what users run first there.
#
#   scripts/install_check.sh [--folder DIR]
#
#   --folder DIR   folder for the packages and the chroot (default: a temporary one, which is removed)
#
# Needs root and debootstrap. The chroot has Debian's base system, Python and the solver Clp, but no compiler; torch is
# that of .deps/python. Exit status: 0 all works, 1 something does not, 2 bad usage, 3 the machine lacks something.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# A program without an engine starts at once.
most_seconds_to_start=2
most_package_bytes=5000000
model=tests/models/qwen2.pt

# in_chroot COMMAND...: runs it in the chroot, where the tests are in /source. The mounts end with the command.
in_chroot() {
    # shellcheck disable=SC2016  # the inner shell expands
    unshare --mount --pid --fork bash -ec '
        bare=$1 root=$2 deps=$3
        shift 3
        mkdir -p "$bare/source" "$bare$deps"
        mount --bind -o ro "$root" "$bare/source"
        mount --bind -o ro "$deps" "$bare$deps"
        mount -t proc proc "$bare/proc"
        exec chroot "$bare" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
    ' bash "$bare" "$root" "$(realpath "$root/.deps")" "$@"
}

make_chroot() {
    [ ! -e "$bare/etc/debian_version" ] || return 0
    debootstrap --variant=minbase --include=python3,python3-venv,coinor-libclp1 bookworm "$bare" >"$folder/debootstrap.log" ||
        { tail -n 20 "$folder/debootstrap.log" && return 1; }
}

# The virtual environment has pip of Debian, and links torch. So nothing is downloaded.
install_wheel() {
    local packages
    packages=$(realpath "$python_tools/../lib/python3.11/site-packages") &&
        "$root/scripts/wheel.sh" --python "$python_tools/python" --output "$folder" &&
        cp "$folder"/offprof-*.whl "$bare/root/" &&
        in_chroot python3 -m venv --clear /root/venv &&
        echo "$packages" >"$bare/root/venv/lib/python3.11/site-packages/torch.pth" &&
        in_chroot sh -c '/root/venv/bin/pip install --no-index --no-deps --force-reinstall /root/offprof-*.whl'
}

check_wheel() { in_chroot /root/venv/bin/python -B /source/tests/install/wheel_check.py; }

install_package() {
    local package
    build small && (cd "$folder" && cpack --config "$root/build-small/CPackConfig.cmake" -B "$folder") || return 1
    package=$(find "$folder" -maxdepth 1 -name 'offprof_*.deb')
    [ "$(stat -c %s "$package")" -lt "$most_package_bytes" ] || { echo "$package is too large" && return 1; }
    cp "$package" "$bare/root/offprof.deb" && in_chroot dpkg -i /root/offprof.deb
}

starts_at_once() {
    local started=$SECONDS
    in_chroot offprof --version --verbose && [ $((SECONDS - started)) -le "$most_seconds_to_start" ]
}

# The trace comes from the wheel: the package cannot record.
check_package() {
    starts_at_once &&
        in_chroot /root/venv/bin/offprof run "/source/$model" --input "@/source/${model%.pt}.inputs" --policy keep -o /root/t.json.gz &&
        in_chroot offprof tune /root/t.json.gz -o /root/policy.json &&
        in_chroot offprof simulate /root/t.json.gz --policy /root/policy.json
}

folder=
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) print_help && exit ;;
    --folder) folder=$(realpath -m "${2:?}") && shift 2 ;;
    *) die 2 "no such option: $1" "see scripts/install_check.sh --help" ;;
    esac
done
[ "$(id -u)" -eq 0 ] || die 3 "only root can make a chroot"
command -v debootstrap >/dev/null || die 3 "there is no debootstrap" "Install it: apt-get install debootstrap"
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf --one-file-system -- "$folder"' EXIT
fi
mkdir -p "$folder"
bare=$folder/debian
part "chroot of Debian 12" make_chroot
part "wheel is built and installed" install_wheel
part "wheel works" check_wheel
part "Debian package is built and installed" install_package
part "Debian package works" check_package
summary
