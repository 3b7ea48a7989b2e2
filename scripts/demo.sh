#!/usr/bin/env bash
# Installs missing packages, builds offprof, and shows the main workflow on a real model: train and trace it,
# tune the offloading, train again with the tuned policy, guard the result against regressions, and do the
# same on a virtual GPU, with the model and with a training script in Python.
#
#   scripts/demo.sh [MODEL.pt [RUN_OPTION...]]
#
#   MODEL.pt      your own TorchScript module instead of the zoo's transformer
#   RUN_OPTION    an option of `offprof run`, for example: --input 'float32[8,3,96,96]'
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in
-h | --help) print_help && exit ;;
-*) die 2 "the first argument is a model, not $1" "see scripts/demo.sh --help" ;;
esac
model=${1:-}
run_options=("${@:2}")
if [ -n "$model" ] && [ ! -f "$model" ]; then die 2 "no such file: $model"; fi

# Shows paths relative to the current folder, so that the printed commands can be typed there.
from_here() { realpath -m --relative-to=. -- "$1"; }
offprof=$(from_here "$root/build/offprof")
out=$(from_here "$root/out/demo")

headline() { printf '\n==> %s\n' "$*"; }

# Shows a command, then runs it.
step() {
    local status=0
    printf '$ %s\n' "${*@Q}" | sed "s/'\([[:alnum:]_.,:=/+-]*\)'/\1/g"
    "$@" || status=$?
    [ "$status" -eq 0 ] || die "$status" "the command above failed with status $status"
}

"$root/scripts/setup.sh" --python
say "the first build takes about five minutes on two cores; later builds take seconds"
build release --target offprof offprof_engine offprof_cuda offprof_stand_ins offprof_python
mkdir -p "$out"

headline "What works on this machine"
step "$offprof" doctor

if [ -z "$model" ]; then
    headline "Create a model: any TorchScript module works; the zoo creates some without Python"
    model=$out/transformer.pt
    step "$offprof" zoo make transformer -o "$model"
fi

headline "Train the model for some steps without offloading, and record a trace"
step "$offprof" run "$model" "${run_options[@]}" --policy keep -o "$out/trace.json.gz"
step "$offprof" view "$out/trace.json.gz"

headline "Replay the trace under thousands of policies and choose one"
step "$offprof" tune "$out/trace.json.gz" -o "$out/policy.json"

headline "Train again with the tuned policy, and compare predicted with measured figures"
step "$offprof" run "$model" "${run_options[@]}" --policy "$out/policy.json" -o "$out/tuned.json.gz"

headline "Guard against regressions: record a baseline, then check a trace against it, as CI would"
step "$offprof" gate "$out/tuned.json.gz" --update --baseline "$out/baseline.json"
step "$offprof" gate "$out/tuned.json.gz" --baseline "$out/baseline.json"

headline "Show what the policy changed"
step "$offprof" diff "$out/trace.json.gz" "$out/tuned.json.gz"

headline "Run the same model on a virtual GPU: LibTorch's CUDA memory, without a GPU"
step "$offprof" run "$model" "${run_options[@]}" --device virtual:h200 --policy keep -o "$out/h200.json.gz"
step "$offprof" tune "$out/h200.json.gz" -o "$out/h200_policy.json"

headline "Record a training script in Python, unchanged, and tune it"
# Not from_here: a virtual environment is found by the path of its link.
python=$(realpath --no-symlinks --relative-to=. -- "$root/.deps/python/bin/python")
script=$(from_here "$root/docs/examples/train.py")
step "$offprof" run "$script" --python "$python" --device virtual:rtx4090 --policy keep -o "$out/script.json.gz"
step "$offprof" tune "$out/script.json.gz" --max-slowdown 20% -o "$out/script_policy.json"
step "$offprof" run "$script" --python "$python" --device virtual:rtx4090 --policy "$out/script_policy.json"

cat <<NEXT

==> All of it worked. Try next:
  open $out/tuned.json.gz in chrome://tracing or Perfetto
  $offprof tune $out/trace.json.gz --max-slowdown 20%
      a lower peak, if steps may take longer
  $offprof simulate $out/trace.json.gz --link 2GB/s
      the same training over a slow link
  $offprof gate $out/tuned.json.gz --baseline $out/baseline.json --limit 'device_peak_bytes<=1MiB'
      a limit that the model does not keep: exit status 1
  $(from_here "$root/scripts/demo.sh") MODEL.pt --input 'float32[8,3,96,96]'
      all this with a model of yours
  $offprof run train.py --device virtual:h200 --policy keep -o train.json.gz
      the same with a training script of yours, in a Python with the torch of this build (--python PATH)
NEXT
