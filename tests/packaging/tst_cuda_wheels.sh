#!/usr/bin/env bash
# Tests FindLibTorch.cmake and packaging/launcher on folders that look like the wheels of CUDA 12, CUDA 13 and CPUs.
set -uo pipefail
packaging=$(realpath "$(dirname "$0")/../../packaging")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CLEAVE_TORCH_DIR LD_LIBRARY_PATH CUDA_HOME CUDA_PATH
failures=0

fail() {
  echo "FAIL: $case: $*"
  cat "$work/out.txt"
  failures=$((failures + 1))
}
contains() { tr -s ' \n' ' ' <"$work/out.txt" | grep -qF -- "$1" || fail "the output lacks: $1"; }
lacks() { ! grep -qF -- "$1" "$work/out.txt" || fail "the output has: $1"; }
empty_files() {
  local file
  for file in "$@"; do
    mkdir -p "$(dirname "$file")"
    : >"$file"
  done
}

# wheel NAME CUDA: torch for this CUDA version; None for a wheel for CPUs.
wheel() {
  local torch=$work/$1/torch version="'$2'"
  empty_files "$torch"/lib/lib{torch_cpu,c10}.so "$torch/include/ATen/ATen.h"
  [ "$2" != None ] || version=None
  printf "__version__ = '2.11.0+%s'\ndebug = False\ncuda: Optional[str] = %s\n" "$1" "$version" >"$torch/version.py"
  [ "$2" = None ] || empty_files "$torch"/lib/lib{torch_cuda,c10_cuda}.so "$work/$1"/nvidia/nccl/lib/libnccl.so.2 \
    "$work/$1/nvidia/nccl/include/nccl.h"
}
wheel cu130 13.0
empty_files "$work"/cu130/nvidia/cu13/{lib/libcudart.so.13,include/cuda_runtime_api.h,include/crt/host_defines.h}
wheel cu128 12.8
empty_files "$work"/cu128/nvidia/cuda_runtime/{lib/libcudart.so.12,include/cuda_runtime_api.h} \
  "$work"/cu128/nvidia/cuda_nvcc/include/crt/host_defines.h "$work"/cu128/nvidia/cublas/include/cublas_v2.h
wheel cpu None
# Wheels beside torch that are for another CUDA version, and wheels without any header of CUDA's.
wheel mixed 13.0
empty_files "$work"/mixed/nvidia/cuda_runtime/{lib/libcudart.so.12,include/cuda_runtime_api.h,include/crt/host_defines.h}
wheel bare 13.0
empty_files "$work"/bare/nvidia/cu13/lib/libcudart.so.13

# A project that finds LibTorch, and a CUDA toolkit of the version TOOLKIT if that is set.
mkdir -p "$work/project" "$work/fmt/fmt"
empty_files "$work/fmt/fmt/format.h" "$work"/toolkit/lib/libcudart.so{,.13} \
  "$work"/toolkit/include/{cuda_runtime_api.h,crt/host_defines.h}
cat >"$work/project/FindCUDAToolkit.cmake" <<END
if(TOOLKIT)
  set(CUDAToolkit_FOUND TRUE)
  set(CUDAToolkit_VERSION \${TOOLKIT})
  string(REGEX MATCH "^[0-9]+" CUDAToolkit_VERSION_MAJOR \${TOOLKIT})
  set(CUDAToolkit_INCLUDE_DIRS $work/toolkit/include)
  set(CUDAToolkit_LIBRARY_DIR $work/toolkit/lib)
endif()
END
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(wheels NONE)
set_property(GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS TRUE)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
set(CMAKE_INCLUDE_PATH $work/fmt)
list(APPEND CMAKE_MODULE_PATH \${CMAKE_SOURCE_DIR} $packaging/cmake)
find_package(LibTorch REQUIRED)
message(STATUS "version=\${LibTorch_CUDA_VERSION};")
if(TARGET LibTorch::cuda)
  get_target_property(links LibTorch::cuda INTERFACE_LINK_LIBRARIES)
  get_target_property(includes LibTorch::cuda INTERFACE_INCLUDE_DIRECTORIES)
  message(STATUS "links=\${links};")
  message(STATUS "includes=\${includes};")
endif()
END
# configure WHEEL [TOOLKIT]
configure() {
  cmake -S "$work/project" -B "$work/build" -DCLEAVE_TORCH_DIR="$work/$1/torch" -DTOOLKIT="${2:-}" \
    >"$work/out.txt" 2>&1 || fail "cmake fails"
}

case="CUDA 13 wheel"
configure cu130 12.4
contains "version=13.0;"
contains "cu130/nvidia/cu13/lib/libcudart.so.13;"
contains "cu130/nvidia/nccl/lib/libnccl.so.2;"
contains "includes=$work/cu130/nvidia/cu13/include;$work/cu130/nvidia/nccl/include;"
lacks "not built"

case="CUDA 12 wheel, in the build folder of another"
configure cu128 13.0
contains "version=12.8;"
contains "cu128/nvidia/cuda_runtime/lib/libcudart.so.12;"
contains "cu128/nvidia/cublas/include"
contains "cu128/nvidia/cuda_nvcc/include"
lacks "$work/toolkit"
lacks cu130

case="wheel for CPUs"
configure cpu 13.0
contains "version=;"
contains "libcleave_nccl is not built: the LibTorch in $work/cpu/torch is for CPUs only"
lacks "links="

case="runtime of another CUDA"
configure mixed 12.4
contains "libcleave_nccl is not built: LibTorch is for CUDA 13.0, for which libcudart.so.13 is missing."
contains "The wheels beside torch have libcudart.so.12. The CUDA toolkit of this system is 12.4."
contains "or install a CUDA 13 toolkit. Ranks run on CPUs only."
lacks "links="

case="no headers, no toolkit"
configure bare
contains "for which cuda_runtime_api.h, crt/host_defines.h is missing."
contains "nvidia-cuda-crt==13.0.*"
lacks "links="

case="no headers, a toolkit of the same CUDA"
configure bare 13.1
contains "bare/nvidia/cu13/lib/libcudart.so.13;"
contains "includes=$work/toolkit/include;"

case="no headers, a toolkit of another CUDA"
configure bare 12.4
contains "The CUDA toolkit of this system is 12.4."
lacks "links="

# The launcher, in an installation whose program prints what it gets.
mkdir -p "$work/installed/bin" "$work/installed/lib/cleave/bin"
sed -e 's/@LIBTORCH_VERSION@/2.11.0/' -e 's/@CUDA_VERSION@/13.0/' "$packaging/launcher" >"$work/installed/bin/cleave-cli"
# shellcheck disable=SC2016  # the program prints its own LD_LIBRARY_PATH
printf '#!/bin/sh\necho "path=$LD_LIBRARY_PATH:"\n' >"$work/installed/lib/cleave/bin/cleave-cli"
chmod +x "$work/installed/bin/cleave-cli" "$work/installed/lib/cleave/bin/cleave-cli"
# launch WHEEL
launch() {
  CLEAVE_TORCH_DIR="$work/$1/torch" "$work/installed/bin/cleave-cli" >"$work/out.txt" 2>&1 || fail "it does not start"
}

case="launcher, CUDA 13"
launch cu130
contains "path=$work/cu130/torch/lib:"
contains "/nvidia/cu13/lib:"
contains "/nvidia/nccl/lib:"
lacks "cleave-cli: "

case="launcher, CUDA 12"
launch cu128
contains "cleave-cli: CLEAVE_TORCH_DIR has LibTorch for CUDA 12.8, but this Cleave is built for CUDA 13.0"
contains "Ranks run on CPUs only"
contains "driver 580 or newer"
contains "/nvidia/cuda_runtime/lib:"

case="launcher, CPUs"
launch cpu
contains "CLEAVE_TORCH_DIR has LibTorch for CPUs only, but this Cleave is built for CUDA 13.0"
contains "path=$work/cpu/torch/lib:"

case="launcher of a Cleave without CUDA"
sed -i 's/^built_for=.*/built_for=/' "$work/installed/bin/cleave-cli"
launch cpu
lacks "cleave-cli: "

[ $failures -eq 0 ] && echo "CUDA wheels: all cases passed"
[ $failures -eq 0 ]
