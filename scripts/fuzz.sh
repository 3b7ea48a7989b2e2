#!/usr/bin/env bash
# Runs the fuzz targets, which test the readers of external input: builds them with clang's libFuzzer, runs
# each one from its corpus, and prints a table. Exit status 1 if any target found a bug.
#
#   scripts/fuzz.sh [--fast] [--runs N] [--seconds S] [--resume] [TARGET...]
#
#   --fast       without the address sanitizer (preset fuzz-fast instead of fuzz), which gives several times as many
#                executions per second. Undefined behaviour and out-of-range indices that the standard library
#                detects still end the target. Run without --fast afterwards to replay the inputs that were kept
#                with the sanitizers
#   --runs N     executions of each target (default 1000000)
#   --seconds S  time limit for each target
#   --resume     counts executions of the identical program in earlier runs, so that each target reaches N in total
#   TARGET       NAME of tests/fuzz/NAME_fuzzer.cpp: trace, policy, replay, ...; default: all
#
# Inputs that trigger a bug are written to out/fuzz/TARGET. Fix the bug and add the input to
# tests/fuzz/corpus/TARGET, which the tests of every build replay. If the target should accept the input, list
# it in tests/fuzz/accepted.txt. Inputs that reached new code stay in out/fuzz/TARGET/corpus, and the next run
# starts with them too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=fuzz
runs=1000000
seconds=0
resumes=false
# limits on the time and memory that one input may take
seconds_per_input=10
most_mib=2048

while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) print_help && exit ;;
    --fast) preset=fuzz-fast && shift ;;
    --runs) runs=${2:?} && shift 2 ;;
    --seconds) seconds=${2:?} && shift 2 ;;
    --resume) resumes=true && shift ;;
    -*) die 2 "no such option: $1" "see scripts/fuzz.sh --help" ;;
    *) break ;;
    esac
done
mapfile -t all < <(cd "$root/tests/fuzz" && basename -s _fuzzer.cpp -- *_fuzzer.cpp)
targets=("$@")
if [ $# -eq 0 ]; then targets=("${all[@]}"); fi
for target in "${targets[@]}"; do
    [ -e "$root/tests/fuzz/${target}_fuzzer.cpp" ] || die 2 "no such target: $target" "The targets are ${all[*]}."
done
"$root/scripts/setup.sh" --small --fuzz

# A freed block stays in quarantine for longer than one execution. The default of 256 MiB would not fit into any
# cache.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=4:thread_local_quarantine_size_kb=256:malloc_context_size=4}

# longest_seed TARGET: prints the size in bytes of the longest input in its corpus.
longest_seed() { find "$root/tests/fuzz/corpus/$1" -type f -printf '%s\n' | sort -n | tail -n 1; }

# most_bytes TARGET: prints the maximum size of an input. Longer inputs are slower and reach no other code. It
# is never below the size of the longest seed, since libFuzzer would cut that seed and the target would then
# reject it.
most_bytes() {
    local bytes=8192 longest
    case $1 in
    allocator_settings | archive_kind | command_line | input_spec | printable | quantity) bytes=512 ;;
    checkpoint | gzip | json | kernel_times | memory_snapshot | policy | profile | safetensors) bytes=4096 ;;
    esac
    longest=$(longest_seed "$1")
    echo $((bytes > longest ? bytes : longest))
}

# fingerprint TARGET: prints a hash of the target's program. Executions of another program do not count for this
# one.
fingerprint() { sha256sum <"$root/build-$preset/tests/${1}_fuzzer" | cut -c1-16; }

# executions TARGET: prints the number of earlier executions of the program.
executions() {
    local log=$root/out/fuzz/$1/executions
    if [ ! -e "$log" ]; then echo 0 && return; fi
    awk -v program="$(fingerprint "$1")" '$1 == program {sum += $3} END {print sum + 0}' "$log"
}

# fuzz TARGET RUNS: runs the target RUNS times and writes libFuzzer's output to its log.
fuzz() {
    local out=$root/out/fuzz/$1 dictionary=$root/tests/fuzz/$1.dict
    if [ ! -e "$dictionary" ]; then dictionary=$root/tests/fuzz/json.dict; fi
    # libFuzzer's entropic schedule takes up to half of the time and finds no more.
    local options=(-runs="$2" -entropic=0 -max_total_time="$seconds" -max_len="$(most_bytes "$1")"
        -timeout="$seconds_per_input" -rss_limit_mb="$most_mib" -artifact_prefix="$out/" -print_final_stats=1 -reload=0
        -dict="$dictionary")
    "$root/build-$preset/tests/${1}_fuzzer" "${options[@]}" "$out/corpus" "$root/tests/fuzz/corpus/$1" >"$out/log" 2>&1
}

# figure TARGET NAME: prints a figure from the target's log; 0 if the process ended before it printed it.
figure() { awk -v name="stat::$2:" '$1 == name {value = $2} END {print value + 0}' "$root/out/fuzz/$1/log"; }

# row TARGET EXECUTIONS FINDINGS: prints a row of the table.
row() {
    awk -v target="$1" -v build="$preset" -v runs="$2" -v pace="$(figure "$1" average_exec_per_sec)" -v findings="$3" '
        / cov: / {for (i = 1; i < NF; ++i) {if ($i == "cov:") edges = $(i + 1); if ($i == "corp:") corpus = $(i + 1)}}
        END {sub("/.*", "", corpus); printf "| %s | %s | %d | %d | %d | %d | %d |\n", target, build, runs, pace, edges, corpus, findings}
    ' "$root/out/fuzz/$1/log"
}

programs=("${targets[@]/%/_fuzzer}")
build "$preset" --target "${programs[@]}"
failed=()
printf '| target | build | executions | per second | edges covered | inputs kept | findings |\n|---|---|---|---|---|---|---|\n'
for target in "${targets[@]}"; do
    findings=0
    before=0
    if $resumes; then before=$(executions "$target"); fi
    mkdir -p "$root/out/fuzz/$target/corpus"
    if [ "$before" -lt "$runs" ]; then
        fuzz "$target" $((runs - before)) || { findings=1 && failed+=("$target"); }
        now=$(figure "$target" number_of_executed_units)
        printf '%s %s %s\n' "$(fingerprint "$target")" "$preset" "$now" >>"$root/out/fuzz/$target/executions"
    else
        now=0
    fi
    row "$target" $((before + now)) "$findings"
done
[ ${#failed[@]} -eq 0 ] || die 1 "bugs found in: ${failed[*]}" "See the bug and its input in out/fuzz/TARGET/log."
