#!/usr/bin/env bash
# Installs the requirements of offprof that the machine lacks: Debian packages, LibTorch in .deps/libtorch, and a
# Python environment in .deps/python.
#
#   scripts/setup.sh [--small] [--torch VERSION] [--lint] [--python] [--programs] [--fuzz] [--nightly] [--coverage]
#                    [--hta] [--browser] [--shells] [--libtorch-dir DIR]
#
#   --small               only the requirements of the small flavour: no LibTorch
#   --torch VERSION       LibTorch of this version instead of the default, for example 2.15, in
#                         .deps/libtorch-VERSION, and with --python its environment in .deps/python-VERSION;
#                         cmake/torch_versions.txt lists the versions
#   --lint                also the requirements of scripts/format.sh and scripts/lint.sh, with ruff and mypy in
#                         the Python environment
#   --python              also the Python environment, with the torch of .deps/libtorch and what the Python
#                         tests require; with --small without torch
#   --programs            also the libraries of all programs in tests/programs, in the Python environment, and
#                         DeepSpeed in .deps/deepspeed
#   --fuzz                also the requirements of scripts/fuzz.sh
#   --nightly             also the requirements of scripts/nightly.sh: a load generator
#   --coverage            also the requirements of scripts/coverage.sh
#   --hta                 also Holistic Trace Analysis in .deps/hta, for the test that it can read our traces
#   --browser             also a headless Chromium (98 MB to download), for the tests of the report page
#   --shells              also zsh, fish and man (10 MB to download), for the tests of completion and man pages
#   --libtorch-dir DIR    folder for LibTorch
#
# Asks no questions. Skips what is already installed, so that a second run does nothing and needs neither the
# network nor root. Installs packages as root, or with sudo if that asks for no password. Exit status: 0
# everything is installed, 2 bad usage, 3 something is missing and cannot be installed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Set by choose_torch. Installed without the wheel's other dependencies: these three packages are enough to build
# everything and to run without a GPU.
libtorch_wheels=()
# The libraries are the same in the wheels for all Python versions. We use the wheel for Debian 12's version,
# whatever the version of python3.
libtorch_python=3.11
libtorch_stamp=offprof-stamp
libtorch_mib_needed=3000

# The wheel of torch, the packages of Debian 12 and the compiled packages are for this Python.
python=/usr/bin/python$libtorch_python

small=false
lint=false
python_environment=false
programs=false
fuzz=false
nightly=false
coverage=false
hta=false
browser=false
shells=false
torch_version=
libtorch_dir=
python_dir=

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
        --small) small=true ;;
        --torch)
            [ $# -ge 2 ] || die 2 "--torch needs a version"
            torch_version=$2
            shift
            ;;
        --lint) lint=true && python_environment=true ;;
        --python) python_environment=true ;;
        --programs) programs=true && python_environment=true ;;
        --fuzz) fuzz=true ;;
        --nightly) nightly=true ;;
        --coverage) coverage=true ;;
        --hta) hta=true ;;
        --browser) browser=true ;;
        --shells) shells=true ;;
        --libtorch-dir)
            [ $# -ge 2 ] || die 2 "--libtorch-dir needs a folder"
            libtorch_dir=$(realpath -m -- "$2")
            shift
            ;;
        -h | --help) print_help && exit ;;
        *) die 2 "unknown argument: $1" "see scripts/setup.sh --help" ;;
        esac
        shift
    done
    if $small && $programs; then die 2 "--programs needs LibTorch, which --small leaves out"; fi
    choose_torch
}

# Sets the packages and the folders for the chosen version of LibTorch. The first version of the table is the default.
choose_torch() {
    local rows row torch suffix=
    mapfile -t rows < <(grep '^[0-9]' "$root/cmake/torch_versions.txt")
    for row in "${rows[@]}"; do
        read -r -a row <<<"$row"
        if [[ -z $torch_version || $torch_version == "${row[0]}" || $torch_version == "${row[0]%.*}" ]]; then
            libtorch_wheels=("torch==${row[0]}" "nvidia-cuda-cupti==${row[1]}" "nvidia-cuda-runtime==${row[2]}")
            break
        fi
    done
    [ ${#libtorch_wheels[@]} -gt 0 ] ||
        die 2 "offprof does not support LibTorch $torch_version" "The versions are: $(printf '%s\n' "${rows[@]%% *}" | paste -sd ' ')"
    torch=${libtorch_wheels[0]##*==}
    if [ "$torch" != "${rows[0]%% *}" ]; then
        suffix=-${torch%.*}
        if $programs; then die 2 "the libraries of the programs are pinned for LibTorch ${rows[0]%% *}" "Leave out --torch or --programs."; fi
    fi
    libtorch_dir=${libtorch_dir:-$root/.deps/libtorch$suffix}
    # Scripts in the environment contain its path, which must hold for all who share a linked .deps.
    python_dir=$(realpath -m -- "$root/.deps/python$suffix")
}

# --- Debian packages ---

# Each line: PACKAGE COMMAND PURPOSE. A package counts as installed if its command exists, from whatever source.
# `-`: the package has no command.
required_packages() {
    cat <<'LIST'
g++ g++ C++20 compiler
cmake cmake configures the build
ninja-build ninja builds
ccache ccache makes a second build fast
python3 python3 runs the scripts that sum up tests
LIST
    library_packages
    if ! $small; then
        echo "libbenchmark-dev - benchmarks"
        if ! libtorch_is_there && [ -z "$(python_with_pip)" ]; then
            echo "python3-pip - downloads LibTorch"
        fi
    fi
    if $python_environment; then
        cat <<'LIST'
python3.11 /usr/bin/python3.11 runs the Python tests
python3.11-venv - creates the Python environment
libpython3.11-dev - headers of Python, for the extension
LIST
    fi
    if $lint; then
        cat <<'LIST'
git git lists the files to check
clang-format-14 clang-format-14 checks the format
clang-tidy-14 clang-tidy-14 finds bugs and breaches of style
shellcheck shellcheck checks the scripts
codespell codespell finds misspellings
LIST
    fi
    if $fuzz; then
        cat <<'LIST'
clang-14 clang++-14 C++20 compiler with libFuzzer
libclang-rt-14-dev - libFuzzer and the sanitizers of clang
LIST
    fi
    # A Chromium of another package serves as well.
    if $browser && ! command -v chromium google-chrome >/dev/null; then
        echo "chromium-headless-shell chromium-headless-shell opens the report page in tests"
    fi
    if $shells; then
        cat <<'LIST'
zsh zsh loads the completion script in tests
fish fish loads the completion script in tests
man-db man renders the man pages in tests
LIST
    fi
    if $nightly; then
        cat <<'LIST'
stress-ng stress-ng keeps the machine busy while tests run
debootstrap debootstrap makes a bare Debian for installed packages
LIST
    fi
    if $coverage; then
        echo "gcovr gcovr reads the counts of gcov"
    fi
}

is_installed() {  # PACKAGE COMMAND
    if [ "$2" != - ] && command -v "$2" >/dev/null; then return 0; fi
    [ "$(dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | head -n 1)" = installed ]
}

missing_packages() {
    local package program why
    while read -r package program why; do
        is_installed "$package" "$program" || echo "$package $why"
    done < <(required_packages)
}

# Prints the prefix for apt-get: nothing for root, else sudo. Fails if neither is possible.
privilege() {
    if [ "$(id -u)" -eq 0 ]; then return 0; fi
    command -v sudo >/dev/null && sudo -n true 2>/dev/null && echo sudo -n
}

# Shows apt-get's long output only if it fails. Adds sbin to PATH, which dpkg needs and plain `su` leaves out.
apt_get() {
    local output
    # shellcheck disable=SC2086  # two words, or none
    if ! output=$($apt_privilege env DEBIAN_FRONTEND=noninteractive PATH="$PATH:/usr/sbin:/sbin" \
        apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" </dev/null 2>&1); then
        printf '%s\n' "$output" >&2
        return 1
    fi
}

install_packages() {
    local missing packages package why by_hand
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    mapfile -t packages < <(cut -d ' ' -f 1 <<<"$missing")
    by_hand="apt-get update && apt-get install --no-install-recommends ${packages[*]}"
    if ! command -v apt-get >/dev/null; then
        die 3 "this machine has no apt-get" "Install the contents of these packages by other means: ${packages[*]}"
    fi
    if ! apt_privilege=$(privilege); then
        die 3 "missing: ${packages[*]}" "Only root can install packages. Run as root:" "  $by_hand"
    fi
    while read -r package why; do say "installing $package ($why)"; done <<<"$missing"
    apt_get update || say "the package lists could not be updated; continuing with the existing lists"
    apt_get install -y --no-install-recommends "${packages[@]}" ||
        die 3 "apt-get could not install the packages; the reason is above" "Fix the cause, or install them by hand: $by_hand"
}

# --- LibTorch ---

stamp_text() { printf '%s\n' "${libtorch_wheels[@]}"; }

has_stamp() {
    [ -f "$1/torch/lib/libtorch_cpu.so" ] && [ "$(cat "$1/$libtorch_stamp" 2>/dev/null)" = "$(stamp_text)" ]
}

# Succeeds if the folder contains exactly our versions, and each file that their wheels list in full size.
is_complete() {
    local dir=$1 wheel name
    [ "$(find "$dir" -maxdepth 1 -name '*.dist-info' 2>/dev/null | wc -l)" -eq ${#libtorch_wheels[@]} ] ||
        return 1
    for wheel in "${libtorch_wheels[@]}"; do
        name=${wheel%%==*}
        [ -f "$dir/${name//-/_}-${wheel##*==}.dist-info/RECORD" ] || return 1
    done
    [ -z "$(missing_files "$dir")" ]
}

missing_files() {
    # RECORD is CSV: path, hash, size. Files created during the installation have no size or are above the folder.
    LC_ALL=C comm -23 \
        <(tr -d '\r' <"$1"/torch-*.dist-info/RECORD | cat - "$1"/nvidia_*.dist-info/RECORD | tr -d '\r' |
            awk -F , 'NF == 3 && $3 != "" && $1 !~ /^\.\.|^"/ {print $3 " " $1}' | LC_ALL=C sort) \
        <(find "$1" -type f -printf '%s %P\n' | LC_ALL=C sort)
}

# Writes our stamp into a complete folder without one, so that the next check is fast.
libtorch_is_there() {
    has_stamp "$libtorch_dir" && return 0
    is_complete "$libtorch_dir" || return 1
    # An ordinary user may lack the permission to write there; the stamp is optional.
    { stamp_text >"$libtorch_dir/$libtorch_stamp"; } 2>/dev/null || true
}

# Prints the first Python that has pip; an active virtual environment may have none.
python_with_pip() {
    local python
    for python in python3 /usr/bin/python3; do
        if "$python" -m pip --version >/dev/null 2>&1; then
            echo "$python"
            return
        fi
    done
}

# Removes the remains of installations of FOLDER that were killed.
remove_leftovers() {  # FOLDER
    local leftover
    for leftover in "$1".tmp.*; do
        if [ -d "$leftover" ] && [ ! -d "/proc/${leftover##*.}" ]; then rm -rf -- "$leftover"; fi
    done
}

check_libtorch_place() {
    local parent free_mib
    parent=$(dirname "$libtorch_dir")
    mkdir -p "$parent" 2>/dev/null || true
    [ -w "$parent" ] || die 3 "cannot write to $parent, in which LibTorch would be installed"
    if [ -e "$libtorch_dir" ] && [ ! -d "$libtorch_dir/torch" ] && [ -n "$(ls -A "$libtorch_dir")" ]; then
        die 2 "$libtorch_dir holds something other than LibTorch" "Give a folder that does not exist yet."
    fi
    free_mib=$(df -Pm "$parent" | awk 'NR == 2 {print $4}')
    if [ "$free_mib" -lt "$libtorch_mib_needed" ]; then
        die 3 "$parent has $free_mib MiB free, but installing LibTorch takes $libtorch_mib_needed MiB"
    fi
}

# Installs into a temporary folder beside the target, then renames it, so that an interrupted download never counts
# as installed. pip unpacks in TMPDIR, so that is beside the target as well.
install_libtorch() {
    local python progress=off
    check_libtorch_place
    remove_leftovers "$libtorch_dir"
    python=$(python_with_pip)
    [ -n "$python" ] || die 3 "LibTorch is downloaded with pip, but no Python here has it" "Install it: apt-get install python3-pip"
    say "installing LibTorch (0.6 GB to download, 1.2 GB in $libtorch_dir): ${libtorch_wheels[*]}"
    if [ -t 2 ]; then progress=on; fi
    beside=$libtorch_dir.tmp.$$
    trap 'rm -rf -- "$beside"' EXIT
    mkdir -p "$beside/tmp"
    TMPDIR=$beside/tmp "$python" -m pip install --no-deps --target "$beside/libtorch" --only-binary :all: \
        --python-version "$libtorch_python" --no-compile --no-cache-dir --no-input \
        --disable-pip-version-check --root-user-action ignore --progress-bar "$progress" \
        "${libtorch_wheels[@]}" </dev/null >&2 ||
        die 3 "pip could not install LibTorch; the reason is above" "Check the network, then run this script again."
    is_complete "$beside/libtorch" || die 3 "pip installed LibTorch incompletely" "Run this script again."
    stamp_text >"$beside/libtorch/$libtorch_stamp"
    put_in_place
}

put_in_place() {
    # Another run of this script may have finished first.
    has_stamp "$libtorch_dir" && return 0
    if [ -e "$libtorch_dir" ]; then mv -T -- "$libtorch_dir" "$beside/old"; fi
    mv -T -- "$beside/libtorch" "$libtorch_dir"
}

# --- Holistic Trace Analysis ---

hta_dir=$root/.deps/hta

# The installation is bound to the version of Python.
hta_stamp() { python3 --version && cat "$root/tests/hta/requirements.txt"; }

# May fail, since without it only one test is skipped.
install_hta() {
    local python beside=$hta_dir.tmp.$$
    [ "$(cat "$hta_dir/offprof-stamp" 2>/dev/null)" != "$(hta_stamp 2>/dev/null)" ] || return 0
    python=$(python_with_pip)
    if [ "$python" != python3 ]; then
        say "python3 has no pip, so the test with Holistic Trace Analysis will be skipped"
        return 0
    fi
    say "installing Holistic Trace Analysis into $hta_dir (0.5 GB; a test loads traces with it)"
    rm -rf -- "$hta_dir" "$hta_dir".tmp.*
    if "$python" -m pip install -q --target "$beside" --no-cache-dir --no-input --no-warn-conflicts \
        --disable-pip-version-check --root-user-action ignore -r "$root/tests/hta/requirements.txt" </dev/null >&2; then
        hta_stamp >"$beside/offprof-stamp"
        mv -T -- "$beside" "$hta_dir"
    else
        rm -rf -- "$beside"
        say "Holistic Trace Analysis could not be installed; the reason is above. Its test will be skipped"
    fi
}

# --- Python environment ---

# Modules whose bytecode is stored: those that the tests import.
torch_imports='import torch, torch._dynamo, torch._inductor.compile_fx, torch.utils.data'

# The environment consists of layers: packages, torch, packages of the programs. Each has a stamp, which is written
# when the layer is complete and holds all that the layer was made from.
python_layer_stamp() {  # LAYER
    case $1 in
    packages) "$python" --version && cat "$root/python/requirements-test.txt" ;;
    torch) realpath -- "$libtorch_dir" && stamp_text && echo "$torch_imports" && cat "$root/scripts/cuda_placeholders.sh" ;;
    programs) cat "$root/python/requirements-programs.txt" ;;
    esac
}

has_python_layer() { [ "$(cat "$python_dir/offprof-stamp-$1" 2>/dev/null)" = "$(python_layer_stamp "$1")" ]; }

finish_python_layer() {  # LAYER FOLDER
    python_layer_stamp "$1" >"$2/offprof-stamp-$1"
}

# The lists are complete and pinned, so pip need not resolve them. Left to itself, it would add NVIDIA's packages.
pip_install() {  # PYTHON REQUIREMENTS [OPTION...]
    TMPDIR=$(dirname "$python_dir") "$1" -m pip install -q --no-deps --only-binary :all: --no-cache-dir --no-input \
        --disable-pip-version-check --root-user-action ignore -r "$2" "${@:3}" </dev/null >&2 ||
        die 3 "pip could not install ${2#"$root/"}; the reason is above" "Check the network, then run this script again."
}

# Creates the environment beside its place, then renames it. Scripts in bin/ contain its path, so that is corrected.
install_python() {
    local beside=$python_dir.tmp.$$
    mkdir -p "$(dirname "$python_dir")"
    remove_leftovers "$python_dir"
    say "installing the Python environment into $python_dir (0.06 GB to download)"
    "$python" -m venv "$beside" >&2 || die 3 "$python cannot create a virtual environment" "apt-get install python3.11-venv"
    pip_install "$beside/bin/python" "$root/python/requirements-test.txt"
    grep -rlIZF "$beside" "$beside/bin" "$beside/pyvenv.cfg" | xargs -0 sed -i "s|$beside|$python_dir|g"
    finish_python_layer packages "$beside"
    rm -rf -- "$python_dir"
    mv -T -- "$beside" "$python_dir"
}

# Links the files of LibTorch's wheels instead of a copy (1.2 GB). The folders are real: LibTorch looks for CUDA's
# libraries relative to its own folder, and finds our placeholders there.
link_torch() {
    local site_packages=$python_dir/lib/python$libtorch_python/site-packages wheel_dir name
    wheel_dir=$(realpath -- "$libtorch_dir")
    say "linking torch into $python_dir"
    for name in torch "torch-${libtorch_wheels[0]##*==}.dist-info" torchgen functorch nvidia; do
        rm -rf -- "${site_packages:?}/$name"
        cp -as -- "$wheel_dir/$name" "$site_packages/$name"
    done
    "$root/scripts/cuda_placeholders.sh" "$site_packages/torch/lib" "$site_packages/nvidia/cu13/lib"
    # Writes the bytecode of these modules, which the wheel lacks. Python cannot store it later if
    # PYTHONDONTWRITEBYTECODE is set, and the tests import torch about two hundred times.
    PYTHONDONTWRITEBYTECODE='' "$python_dir/bin/python" -c "$torch_imports" || die 3 "the Python environment cannot import torch; the reason is above"
    finish_python_layer torch "$python_dir"
}

install_programs() {
    say "installing the libraries of the programs in tests/programs into $python_dir (0.3 GB to download)"
    pip_install "$python_dir/bin/python" "$root/python/requirements-programs.txt"
    finish_python_layer programs "$python_dir"
}

deepspeed_dir=$root/.deps/deepspeed

has_deepspeed() { cmp -s "$root/python/requirements-deepspeed.txt" "$deepspeed_dir/offprof-stamp"; }

install_deepspeed() {
    local beside=$deepspeed_dir.tmp.$$
    remove_leftovers "$deepspeed_dir"
    say "installing DeepSpeed into $deepspeed_dir (5 MB to download)"
    DS_BUILD_OPS=0 pip_install "$python_dir/bin/python" "$root/python/requirements-deepspeed.txt" --target "$beside" \
        --use-pep517 --no-build-isolation -q
    cp "$root/python/requirements-deepspeed.txt" "$beside/offprof-stamp"
    rm -rf -- "$deepspeed_dir"
    mv -T -- "$beside" "$deepspeed_dir"
}

parse_arguments "$@"
install_packages
if ! $small && ! libtorch_is_there; then install_libtorch; fi
if $python_environment && ! has_python_layer packages; then install_python; fi
if $python_environment && ! $small && ! has_python_layer torch; then link_torch; fi
if $programs && ! has_python_layer programs; then install_programs; fi
if $programs && ! has_deepspeed; then install_deepspeed; fi
if $hta; then install_hta; fi
