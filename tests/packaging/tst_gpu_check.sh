#!/usr/bin/env bash
# Tests packaging/gpu-check with fake programs: what the report contains, exit codes, redaction, a failed step, Ctrl+C.
set -uo pipefail
check=$(realpath "$(dirname "$0")/../../packaging/gpu-check")
work=$(mktemp -d)
user=ada.king # A point: no random name of a temporary folder has one.
trap 'rm -rf "$work"' EXIT
unset CUDA_VISIBLE_DEVICES
mkdir -p "$work/path" "$work/bin" "$work/home/$user"
failures=0

fail() {
  echo "FAIL: $case: $*"
  failures=$((failures + 1))
}
# program NAME: stdin is its script.
program() {
  { echo '#!/usr/bin/env bash'; cat; } >"$work/$1"
  chmod +x "$work/$1"
}
# start [VARIABLE=VALUE...] -- OPTIONS: runs the check in $work.
start() {
  local environment=()
  while [ "$1" != -- ]; do
    environment+=("$1")
    shift
  done
  shift
  rm -f "$work/report.txt"
  (cd "$work" && env HOME="$work/home/$user" USER=$user LOGNAME=$user HOSTNAME=node17.example PATH="$work/path:$PATH" \
    CLEAVE_GPU_CHECK_BIN=bin "${environment[@]}" "$check" --output report.txt "$@") >"$work/out.txt" 2>&1
}
contains() { grep -qF -- "$1" "$work/report.txt" || { fail "the report lacks: $1"; cat "$work/report.txt"; }; }
lacks() { ! grep -qF -- "$1" "$work/report.txt" || { fail "the report has: $1"; grep -nF -- "$1" "$work/report.txt"; }; }
exits() { [ "$1" -eq "$2" ] || { fail "exit code $1, expected $2"; cat "$work/out.txt"; }; }

program path/hostname <<'END'
echo node17.example
END
program path/nvidia-smi <<'END'
echo "nvidia-smi $*"
END
program path/ctest <<'END'
echo "ctest $*"
echo "GPU tests on ${CUDA_VISIBLE_DEVICES:-all GPUs}"
[ -z "${FAIL_TESTS:-}" ] || { echo "1 test failed"; exit 8; }
END
program path/compute-sanitizer <<'END'
echo "compute-sanitizer $*"
END
program bin/cleave-rank <<'END'
case ${PROBE:-two} in
  two)
    echo "CUDA 13.0, driver for CUDA 13.0, NCCL 2.28.9, 2 GPUs"
    echo "GPU 0: Fake H100, sm_90, 79 GiB of 80 GiB free: a kernel ran"
    echo "GPU 1: Fake H100, sm_90, 79 GiB of 80 GiB free: a kernel ran" ;;
  second)
    echo "CUDA 13.0, driver for CUDA 13.0, NCCL 2.28.9, 2 GPUs"
    echo "GPU 0: Fake V100, sm_70: no kernel ran: no kernel image is available"
    echo "GPU 1: Fake H100, sm_90, 79 GiB of 80 GiB free: a kernel ran" ;;
  none)
    echo "CUDA 13.0, no driver, NCCL 2.28.9: no NVIDIA driver is loaded; CUDA 13.0 needs driver 580 or newer"
    exit 4 ;;
  old)
    echo "CUDA 13.0, driver for CUDA 13.0, NCCL 2.28.9, 1 GPU"
    echo "GPU 0: Fake V100, sm_70: no kernel ran: no kernel image is available"
    exit 4 ;;
  nowhere)
    echo "cleave-rank: The backend nccl needs libcleave_nccl.so, which is not there." >&2
    exit 4 ;;
esac
END
program bin/cleave-cli <<'END'
echo "cleave-cli $*"
echo "on $(hostname), for $USER, in $HOME/models and /home/grace/models, over 10.1.2.3"
for ((i = 1; i <= ${LINES_PRINTED:-1}; ++i)); do echo "line $i of the run"; done
while [ $# -gt 0 ]; do
  case $1 in
    --output) echo '{"name": "measured"}' >"$2" ;;
    --json) printf '{\n  "passed": true\n}\n' >"$2" ;;
    run) [ -z "${HANGS:-}" ] || { touch "$HANGS"; sleep 60; } ;;
    calibrate) [ -z "${FAIL_CALIBRATION:-}" ] || { echo "calibration broke"; exit 5; } ;;
  esac
  shift
done
END

case="two GPUs"
start LINES_PRINTED=300 -- --no-build
exits $? 0
contains "Cleave GPU check: every step that ran passed on 2 GPU(s)"
contains "GPUs     2 usable"
contains "nvidia-smi topo -m"
contains "GPU 1: Fake H100, sm_90, 79 GiB of 80 GiB free: a kernel ran"
contains "ctest --test-dir build/release -L ^gpu$"
contains "calibrate --ranks 2 --backend nccl --output <work>/profile.json"
contains "run resources/models/tiny-llama --ranks 2 --engine reference --backend nccl --device-profile <work>/profile.json"
contains "--target-processes all --error-exitcode 1"
contains '{ "passed": true}'
contains "line 300 of the run"
contains "line 101 of the run"
lacks "line 100 of the run"
grep -qE '^run over NCCL +0 +[0-9]+  passed$' "$work/report.txt" || fail "the table lacks the run"
[ "$(sed -n '1,20s/^step .*/table/p' "$work/report.txt")" = table ] || fail "the table is not at the top"

case="names and paths"
start -- --no-build
exits $? 0
contains "on <host>, for <user>, in "
contains "/models and /home/<user>/models, over <address>"
for name in "$user" node17 grace 10.1.2.3 "$work/home" "$work/bin" "$(dirname "$(dirname "$check")")"; do lacks "$name"; done

case="quick"
start -- --no-build --quick
exits $? 0
lacks "compute-sanitizer --target"
lacks "ctest --test-dir"
contains "not run: --quick"

case="failed steps"
start FAIL_TESTS=1 FAIL_CALIBRATION=1 -- --no-build
exits $? 1
contains "Cleave GPU check: 2 step(s) failed on 2 GPU(s)"
contains "failed: 1 test failed"
contains "failed: calibration broke"
contains "exit code 8"
contains "run resources/models/tiny-llama --ranks 2 --engine reference --backend nccl --json"
contains "compute-sanitizer --target-processes all"

case="one usable GPU of two"
start PROBE=second -- --no-build
exits $? 0
contains "GPUs     1 usable"
contains "GPU tests on 1"
contains "not run: it measures collectives and needs 2 GPUs"
contains "run resources/models/tiny-llama --ranks 1"
start PROBE=second CUDA_VISIBLE_DEVICES=4,6 -- --no-build
contains "GPU tests on 6"

case="no usable GPU"
while IFS='|' read -r probe sentence; do
  start PROBE="$probe" -- --no-build
  exits $? 4
  contains "Cleave GPU check: no usable GPU: $sentence"
  lacks "GPU tests"
  lacks "run over NCCL"
done <<'END'
none|no NVIDIA driver is loaded; CUDA 13.0 needs driver 580 or newer.
old|GPU 0: Fake V100, sm_70: no kernel ran: no kernel image is available.
nowhere|The backend nccl needs libcleave_nccl.so, which is not there.
END

case="Ctrl+C"
set -m  # a job of its own does not ignore SIGINT
start HANGS="$work/hangs" -- --no-build &
job=$!
set +m
for ((i = 0; i < 300; ++i)); do
  [ ! -e "$work/hangs" ] || break
  sleep 0.1
done
kill -INT -- "-$job"
wait $job
exits $? 130
contains "Cleave GPU check: interrupted before its end"
contains "interrupted after"
contains "calibrate --ranks 2"

case="usage"
start -- --fast
exits $? 2

case="a folder as the report"
mkdir "$work/folder"
start -- --no-build --quick --output "$work/folder"
exits $? 2

case="programs that are missing"
start CLEAVE_GPU_CHECK_BIN="$work/nowhere" -- --no-build --quick
exits $? 1
contains "cleave-rank and cleave-cli are not in "
lacks "no usable GPU"

[ $failures -eq 0 ] && echo "gpu-check: all cases passed"
[ $failures -eq 0 ]
