#!/usr/bin/env bash
# Runs random autograd programs under random policies with random seeds, alternately on the host and on the
# virtual GPU, until the time is up. Before that, runs thousands of steps on each device. Stops with exit
# status 1 at the first failure.
#
#   scripts/soak.sh [--hours H | --minutes M] [--programs N] [--steps N]
#
#   --hours, --minutes    duration (default 10 minutes)
#   --programs            programs per seed; a line is printed after each seed (default 500)
#   --steps               steps of the long run on each device at the beginning (default 10000; 0: no long run)
#
# Keeps failures in out/soak: the output of the seed, and the shrunk case as a file.
# build/property_test --replay FILE (or build/virtual_property_test) runs the case again.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

minutes=10
programs=500
steps=10000
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) print_help && exit ;;
    --hours) minutes=$((${2:?} * 60)) && shift 2 ;;
    --minutes) minutes=${2:?} && shift 2 ;;
    --programs) programs=${2:?} && shift 2 ;;
    --steps) steps=${2:?} && shift 2 ;;
    *) die 2 "no such option: $1" "see scripts/soak.sh --help" ;;
    esac
done

"$root/scripts/setup.sh"
build release --target offprof_cuda offprof_stand_ins property_test virtual_property_test
folder=$root/out/soak
mkdir -p "$folder"
started=$SECONDS
seeds=0
tried=0

# run PROGRAM FILTER [OPTION...]: runs tests with their output in out/soak/last.txt.
run() {
    local program=$1 filter=$2
    shift 2
    "$root/build/$program" --gtest_filter="$filter" --keep "$folder" "$@" >"$folder/last.txt" 2>&1
}

# found WHAT: keeps and prints the output of a failure, and ends the script.
found() {
    local kept
    kept=$folder/found.$(date -u +%Y%m%dT%H%M%SZ).txt
    mv "$folder/last.txt" "$kept"
    grep -vE '^\[|^$' "$kept" | head -60 >&2
    die 1 "$1: see ${kept#"$root/"}" "cases are in ${folder#"$root/"}: failing.*.json, or running.*.json after a crash"
}

if [ "$steps" -gt 0 ]; then
    for program in property_test virtual_property_test; do
        say "$steps steps: $program"
        run "$program" '*LongRun*' --steps "$steps" || found "a long run does not stay flat"
        grep -E ' steps, |since then' "$folder/last.txt"
    done
fi
while [ $((SECONDS - started)) -lt $((minutes * 60)) ]; do
    for program in property_test virtual_property_test; do
        seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
        export RC_PARAMS="seed=$seed max_success=$programs"
        run "$program" '*RandomPrograms*' || found "$program does not hold with RC_PARAMS=\"$RC_PARAMS\""
        seeds=$((seeds + 1))
        tried=$((tried + programs))
        printf '%5d s  %-22s seed %-10s  %s\n' $((SECONDS - started)) "$program" "$seed" \
            "$(grep -m1 -E '^[0-9]+ programs' "$folder/last.txt")"
    done
done
say "all passed: $tried programs from $seeds seeds in $((SECONDS - started)) s"
