# Finds LibTorch as the pip wheel installs it, without the wheel's own CMake files: those need nvcc and probe for GPUs.
#
# Looks in CLEAVE_TORCH_DIR (the folder of the installed torch package), then in the virtual environment that
# packaging/setup makes. Defines:
#   LibTorch::cpu    torch_cpu and c10
#   LibTorch::cuda   torch_cuda, c10_cuda, NCCL and the CUDA runtime; only where the wheel brings them
set(LibTorch_VERSION_WANTED 2.11.0)
if(NOT CLEAVE_TORCH_DIR)
  set(cacheHome $ENV{XDG_CACHE_HOME})
  if(NOT cacheHome)
    set(cacheHome $ENV{HOME}/.cache)
  endif()
  file(GLOB candidates ${cacheHome}/cleave/venv-torch-${LibTorch_VERSION_WANTED}/lib/python3*/site-packages/torch)
  if(candidates)
    list(GET candidates 0 firstCandidate)
    set(CLEAVE_TORCH_DIR ${firstCandidate} CACHE PATH "Folder of the installed torch package" FORCE)
  endif()
endif()

find_library(LibTorch_CPU_LIBRARY torch_cpu PATHS ${CLEAVE_TORCH_DIR}/lib NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY c10 PATHS ${CLEAVE_TORCH_DIR}/lib NO_DEFAULT_PATH)
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h PATHS ${CLEAVE_TORCH_DIR}/include NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run packaging/setup, or set CLEAVE_TORCH_DIR to the folder of an installed torch package")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  # The wheel's include folder has a newer fmt, and no library for it: compiled into every file it takes seconds each.
  # The system's, which has one, goes in front.
  find_path(LibTorch_SYSTEM_FMT fmt/format.h)
  set(systemFmt ${CMAKE_BINARY_DIR}/system-fmt)
  file(MAKE_DIRECTORY ${systemFmt})
  file(CREATE_LINK ${LibTorch_SYSTEM_FMT}/fmt ${systemFmt}/fmt SYMBOLIC)

  add_library(LibTorch::c10 SHARED IMPORTED GLOBAL)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_LIBRARY})
  add_library(LibTorch::cpu SHARED IMPORTED GLOBAL)
  set_target_properties(LibTorch::cpu PROPERTIES
    IMPORTED_LOCATION ${LibTorch_CPU_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${systemFmt};${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES LibTorch::c10
    # The wheel's libtorch_cpu itself needs CUDA's runtime libraries; they load without a driver.
    INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined")

  find_library(LibTorch_CUDA_LIBRARY torch_cuda PATHS ${CLEAVE_TORCH_DIR}/lib NO_DEFAULT_PATH)
  find_library(LibTorch_C10_CUDA_LIBRARY c10_cuda PATHS ${CLEAVE_TORCH_DIR}/lib NO_DEFAULT_PATH)
  set(nvidiaRoot ${CLEAVE_TORCH_DIR}/../nvidia)
  find_package(CUDAToolkit QUIET)
  find_path(LibTorch_CUDART_INCLUDE_DIR cuda_runtime_api.h
    PATHS ${CUDAToolkit_INCLUDE_DIRS} ${nvidiaRoot}/cu13/include NO_DEFAULT_PATH)
  find_library(LibTorch_CUDART_LIBRARY NAMES cudart libcudart.so.13
    PATHS ${nvidiaRoot}/cu13/lib ${CUDAToolkit_LIBRARY_DIR} NO_DEFAULT_PATH)
  find_path(LibTorch_NCCL_INCLUDE_DIR nccl.h PATHS ${nvidiaRoot}/nccl/include NO_DEFAULT_PATH)
  find_library(LibTorch_NCCL_LIBRARY NAMES nccl libnccl.so.2 PATHS ${nvidiaRoot}/nccl/lib NO_DEFAULT_PATH)
  if(LibTorch_CUDA_LIBRARY AND LibTorch_C10_CUDA_LIBRARY AND LibTorch_CUDART_INCLUDE_DIR AND LibTorch_CUDART_LIBRARY
     AND LibTorch_NCCL_INCLUDE_DIR AND LibTorch_NCCL_LIBRARY)
    set(LibTorch_HAS_CUDA TRUE)
    add_library(LibTorch::c10_cuda SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::c10_cuda PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_CUDA_LIBRARY})
    add_library(LibTorch::cuda SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::cuda PROPERTIES
      IMPORTED_LOCATION ${LibTorch_CUDA_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_CUDART_INCLUDE_DIR};${LibTorch_NCCL_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES "LibTorch::cpu;LibTorch::c10_cuda;${LibTorch_CUDART_LIBRARY};${LibTorch_NCCL_LIBRARY}"
      INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined")
  else()
    set(LibTorch_HAS_CUDA FALSE)
  endif()
endif()
