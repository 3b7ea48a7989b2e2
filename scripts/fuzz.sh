#!/usr/bin/env bash
# Runs fuzz targets, each of which reads what comes from outside: builds them (preset fuzz: clang's libFuzzer, with the
# sanitizers), runs each from its corpus, and prints a table. Exit status 1 if one of them found anything.
#
#   scripts/fuzz.sh [--runs N] [TARGET...]
#
#   --runs N    executions of each target (default 1000000)
#   TARGET      as tests/fuzz/TARGET_fuzzer.cpp: trace, policy, replay, ...; without any: all
#
# What is found lies in out/fuzz/TARGET afterwards. Put it, mended, into tests/fuzz/corpus/TARGET, which every build's tests
# replay. Inputs that reached new code stay in out/fuzz/TARGET/corpus, and the next run begins with them too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

runs=1000000
# No input may take longer or more memory.
seconds_per_input=10
most_mib=2048
# Longer inputs are slower, and reach no other code.
most_bytes=16384

while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) print_help && exit ;;
    --runs) runs=${2:?} && shift 2 ;;
    -*) die 2 "no such option: $1" "see scripts/fuzz.sh --help" ;;
    *) break ;;
    esac
done
mapfile -t all < <(cd "$root/tests/fuzz" && basename -s _fuzzer.cpp -- *_fuzzer.cpp)
targets=("$@")
if [ $# -eq 0 ]; then targets=("${all[@]}"); fi
for target in "${targets[@]}"; do
    [ -e "$root/tests/fuzz/${target}_fuzzer.cpp" ] || die 2 "no such target: $target" "There are ${all[*]}."
done
"$root/scripts/setup.sh" --small --fuzz

# fuzz TARGET: runs it, and keeps what libFuzzer says.
fuzz() {
    local out=$root/out/fuzz/$1 dictionary=$root/tests/fuzz/$1.dict
    if [ ! -e "$dictionary" ]; then dictionary=$root/tests/fuzz/json.dict; fi
    local options=(-runs="$runs" -max_len="$most_bytes" -timeout="$seconds_per_input" -rss_limit_mb="$most_mib"
        -artifact_prefix="$out/" -print_final_stats=1 -reload=0 -dict="$dictionary")
    mkdir -p "$out/corpus"
    "$root/build-fuzz/tests/${1}_fuzzer" "${options[@]}" "$out/corpus" "$root/tests/fuzz/corpus/$1" >"$out/log" 2>&1
}

# row TARGET FINDINGS: of its log.
row() {
    local log=$root/out/fuzz/$1/log
    awk -v target="$1" -v findings="$2" '
        /^stat::number_of_executed_units:/ {runs = $2}
        /^stat::average_exec_per_sec:/ {pace = $2}
        / cov: / {for (i = 1; i < NF; ++i) {if ($i == "cov:") edges = $(i + 1); if ($i == "corp:") corpus = $(i + 1)}}
        END {sub("/.*", "", corpus); printf "| %s | %d | %d | %d | %d | %d |\n", target, runs, pace, edges, corpus, findings}
    ' "$log"
}

programs=("${targets[@]/%/_fuzzer}")
build fuzz --target "${programs[@]}"
failed=()
printf '| target | executions | a second | edges covered | inputs kept | findings |\n|---|---|---|---|---|---|\n'
for target in "${targets[@]}"; do
    findings=0
    fuzz "$target" || { findings=1 && failed+=("$target"); }
    row "$target" "$findings"
done
[ ${#failed[@]} -eq 0 ] || die 1 "found something: ${failed[*]}" "out/fuzz/TARGET/log says what, and which input."
