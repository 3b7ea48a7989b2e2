# Functions shared by the scripts. Source this file; do not run it.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '==> %s\n' "$*"; }

# die STATUS MESSAGE [HINT...]: prints the message and ends the script. STATUS: 2 bad usage, 3 the machine lacks
# something.
die() {
    local status=$1
    shift
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    shift
    local hint
    for hint in "$@"; do printf '  %s\n' "$hint" >&2; done
    exit "$status"
}

# Prints the comment at the top of the running script as its help.
print_help() { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"; }

# Runs several parts and prints their results at the end: call `part NAME COMMAND...` for each, then `summary`,
# whose exit status is 1 if a part failed. The summary repeats the last lines of each failed part, so that the end
# of a long output tells why.
parts=()
failed_parts=0
failed_tails=()

part() {
    local name=$1 started=$SECONDS verdict=ok output
    shift
    printf '\n### %s\n' "$name"
    output=$(mktemp)
    if ! (set -o pipefail && "$@" 2>&1 | tee -- "$output"); then
        verdict=FAILED && failed_parts=$((failed_parts + 1))
        failed_tails+=("$(printf '\n### failed: %s\n' "$name" && tail -n 60 -- "$output")")
    fi
    rm -f -- "$output"
    parts+=("$(printf '%-8s %5d s  %s' "$verdict" $((SECONDS - started)) "$name")")
}

summary() {
    [ "$failed_parts" -eq 0 ] || printf '%s\n' "${failed_tails[@]}"
    printf '\n### summary\n'
    printf '%s\n' "${parts[@]}"
    [ "$failed_parts" -eq 0 ]
}

# job_count [MIB]: prints the number of parallel jobs: one per processor, or fewer if each job takes MIB of
# memory and that is not available.
job_count() {
    local jobs fitting
    jobs=$(nproc)
    if [ $# -gt 0 ]; then
        fitting=$(awk -v each="$1" '/^MemAvailable:/ {print int($2 / 1024 / each)}' /proc/meminfo)
        if [ "${fitting:-1}" -lt 1 ]; then fitting=1; fi
        if [ "$fitting" -lt "$jobs" ]; then jobs=$fitting; fi
    fi
    echo "$jobs"
}

# source_files PATTERN...: prints the repository's files that match, NUL-separated. Includes new files unless
# git ignores them.
source_files() {
    git -C "$root" -c safe.directory="$root" \
        ls-files -z --cached --others --exclude-standard --deduplicate -- "$@" |
        while IFS= read -r -d '' file; do
            if [ -f "$root/$file" ]; then printf '%s\0' "$file"; fi
        done
}

# memory that the compiler takes for a file that includes LibTorch
mib_per_torch_job=2048

# The commands of the Python environment, which scripts/setup.sh --python installs.
# shellcheck disable=SC2034  # used by the scripts that source this file
python_tools=$root/.deps/python/bin

# The folder of scripts/carry.sh, with libraries for a machine without network.
# shellcheck disable=SC2034  # used by the scripts that source this file
carried_dir=$root/.deps/carried

# Debian packages of the libraries that offprof is built with, in the form of scripts/setup.sh.
library_packages() {
    cat <<'LIST'
libcli11-dev - command-line parser
libfmt-dev - text formatting
nlohmann-json3-dev - JSON reader and writer
rapidjson-dev - fast JSON parser for traces
libpugixml-dev - JUnit XML of the gate
libtomlplusplus-dev - parser of offprof.toml
zlib1g-dev - gzip for traces
coinor-libclp-dev - solver of linear programs, for the bounds of plans
liburing-dev - io_uring for the disk tier
libxxhash-dev - checksums for the disk tier
libblosc-dev - compression of offloaded tensors in host memory
libgtest-dev - test framework
libgmock-dev - matchers for the tests
librapidcheck-dev - property tests
LIST
}

# configure PRESET [CMAKE_OPTION...]
configure() {
    local preset=$1
    shift
    if command -v ccache >/dev/null; then
        # ccache caches files with a precompiled header only if it may ignore their defines and times. Its settings
        # are part of the launcher, so that a later call of ninja has them too.
        local sloppiness=${CCACHE_SLOPPINESS:-pch_defines,time_macros} base_dir=${CCACHE_BASEDIR:-$root}
        set -- "-DCMAKE_CXX_COMPILER_LAUNCHER=env;CCACHE_SLOPPINESS=$sloppiness;CCACHE_BASEDIR=$base_dir;ccache" "$@"
    fi
    say "configuring $preset"
    (cd "$root" && cmake --preset "$preset" --log-level=WARNING "$@")
}

# build PRESET [CMAKE_BUILD_OPTION...]: configures, then builds.
build() {
    local preset=$1 jobs
    shift
    configure "$preset"
    if [ "$preset" = small ]; then jobs=$(job_count); else jobs=$(job_count "$mib_per_torch_job"); fi
    say "building $preset ($jobs jobs)"
    (cd "$root" && cmake --build --preset "$preset" --parallel "$jobs" "$@")
}
