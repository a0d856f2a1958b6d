# Finds LibTorch as the pip wheel installs it, without the wheel's own CMake files: those need nvcc and probe for GPUs.
#
# Looks in CLEAVE_TORCH_DIR (the folder of the installed torch package), then in the virtual environment that
# packaging/setup makes. Defines:
#   LibTorch::cpu    torch_cpu and c10
#   LibTorch::cuda   torch_cuda, c10_cuda, NCCL and the CUDA runtime; only if all of them are for one CUDA version
#   LibTorch_CUDA_VERSION   CUDA version that LibTorch is built for, such as 13.0; empty for a CPU build or if unknown
#
# CUDA's runtime and headers come from the NVIDIA wheels: nvidia/cu13/{include,lib} for CUDA 13,
# nvidia/cuda_runtime/{include,lib} and others for CUDA 12. A CUDA toolkit of the system is used for what they lack, and
# only if it has the same major version: libtorch_cuda.so loads the runtime of its own, and a process cannot use two.
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

# Searched anew by each configuration: CLEAVE_TORCH_DIR may have changed.
foreach(name CPU_LIBRARY C10_LIBRARY INCLUDE_DIR CUDA_LIBRARY C10_CUDA_LIBRARY CUDART_INCLUDE_DIR CUDART_LIBRARY
    CRT_INCLUDE_DIR NCCL_INCLUDE_DIR NCCL_LIBRARY)
  unset(LibTorch_${name} CACHE)
endforeach()
find_library(LibTorch_CPU_LIBRARY torch_cpu PATHS ${CLEAVE_TORCH_DIR}/lib NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY c10 PATHS ${CLEAVE_TORCH_DIR}/lib NO_DEFAULT_PATH)
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h PATHS ${CLEAVE_TORCH_DIR}/include NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run packaging/setup, or set CLEAVE_TORCH_DIR to the folder of an installed torch package")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  # The wheel's include folder has a newer fmt without a library. Compiled into every file, it takes seconds per file.
  # So the include path of the system's fmt, which has a library, comes first.
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

  # CUDA version of LibTorch: version.py has a line such as `cuda: Optional[str] = '13.0'`.
  set(cudaVersion "")
  if(EXISTS ${CLEAVE_TORCH_DIR}/version.py)
    file(STRINGS ${CLEAVE_TORCH_DIR}/version.py cudaLine REGEX "^cuda[ :].*= *['\"][0-9]+")
    if(cudaLine MATCHES "= *['\"]([0-9]+[.]?[0-9]*)")
      set(cudaVersion ${CMAKE_MATCH_1})
    endif()
  endif()
  set(LibTorch_CUDA_VERSION "${cudaVersion}" CACHE INTERNAL "CUDA version that LibTorch is built for")
  string(REGEX MATCH "^[0-9]+" cudaMajor "${cudaVersion}")

  find_library(LibTorch_CUDA_LIBRARY torch_cuda PATHS ${CLEAVE_TORCH_DIR}/lib NO_DEFAULT_PATH)
  find_library(LibTorch_C10_CUDA_LIBRARY c10_cuda PATHS ${CLEAVE_TORCH_DIR}/lib NO_DEFAULT_PATH)
  get_filename_component(nvidiaRoot ${CLEAVE_TORCH_DIR}/../nvidia ABSOLUTE)
  file(GLOB nvidiaIncludes ${nvidiaRoot}/*/include)
  file(GLOB nvidiaLibs ${nvidiaRoot}/*/lib)
  set(cudartNames libcudart.so.${cudaMajor})
  if(NOT cudaMajor)
    set(cudartNames libcudart.so.13 libcudart.so.12 cudart)
  endif()
  find_library(LibTorch_CUDART_LIBRARY NAMES ${cudartNames} PATHS ${nvidiaLibs} NO_DEFAULT_PATH)
  find_path(LibTorch_CUDART_INCLUDE_DIR cuda_runtime_api.h PATHS ${nvidiaIncludes} NO_DEFAULT_PATH)
  # cuda_runtime_api.h includes it, and torch does not install the wheel that has it.
  find_path(LibTorch_CRT_INCLUDE_DIR crt/host_defines.h PATHS ${nvidiaIncludes} NO_DEFAULT_PATH)
  find_library(LibTorch_NCCL_LIBRARY NAMES libnccl.so.2 nccl PATHS ${nvidiaLibs} NO_DEFAULT_PATH)
  find_path(LibTorch_NCCL_INCLUDE_DIR nccl.h PATHS ${nvidiaIncludes} NO_DEFAULT_PATH)

  if(LibTorch_CUDA_LIBRARY
     AND NOT (LibTorch_CUDART_LIBRARY AND LibTorch_CUDART_INCLUDE_DIR AND LibTorch_CRT_INCLUDE_DIR))
    find_package(CUDAToolkit QUIET)
    if(CUDAToolkit_FOUND AND (NOT cudaMajor OR CUDAToolkit_VERSION_MAJOR EQUAL cudaMajor))
      find_library(LibTorch_CUDART_LIBRARY NAMES ${cudartNames} cudart PATHS ${CUDAToolkit_LIBRARY_DIR} NO_DEFAULT_PATH)
      find_path(LibTorch_CUDART_INCLUDE_DIR cuda_runtime_api.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
      find_path(LibTorch_CRT_INCLUDE_DIR crt/host_defines.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
    endif()
  endif()

  if(NOT LibTorch_CUDA_LIBRARY OR NOT LibTorch_C10_CUDA_LIBRARY)
    set(LibTorch_HAS_CUDA FALSE)
    message(STATUS "libcleave_nccl is not built: the LibTorch in ${CLEAVE_TORCH_DIR} is for CPUs only")
  elseif(LibTorch_CUDART_INCLUDE_DIR AND LibTorch_CUDART_LIBRARY AND LibTorch_CRT_INCLUDE_DIR
     AND LibTorch_NCCL_INCLUDE_DIR AND LibTorch_NCCL_LIBRARY)
    # LibTorch's headers include those of cuBLAS, cuSPARSE and cuSOLVER: one folder for CUDA 13, one each for CUDA 12.
    set(cudaIncludes ${LibTorch_CUDART_INCLUDE_DIR} ${LibTorch_NCCL_INCLUDE_DIR} ${nvidiaIncludes}
      ${LibTorch_CRT_INCLUDE_DIR})
    list(REMOVE_DUPLICATES cudaIncludes)
    set(LibTorch_HAS_CUDA TRUE)
    add_library(LibTorch::c10_cuda SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::c10_cuda PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_CUDA_LIBRARY})
    add_library(LibTorch::cuda SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::cuda PROPERTIES
      IMPORTED_LOCATION ${LibTorch_CUDA_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES "${cudaIncludes}"
      INTERFACE_LINK_LIBRARIES "LibTorch::cpu;LibTorch::c10_cuda;${LibTorch_CUDART_LIBRARY};${LibTorch_NCCL_LIBRARY}"
      INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined")
  else()
    set(LibTorch_HAS_CUDA FALSE)
    set(lacks "")
    foreach(pair "CUDART_LIBRARY=libcudart.so.${cudaMajor}" CUDART_INCLUDE_DIR=cuda_runtime_api.h
        CRT_INCLUDE_DIR=crt/host_defines.h NCCL_LIBRARY=libnccl.so.2 NCCL_INCLUDE_DIR=nccl.h)
      string(REGEX MATCH "^([^=]+)=(.*)$" unused ${pair})
      if(NOT LibTorch_${CMAKE_MATCH_1})
        list(APPEND lacks ${CMAKE_MATCH_2})
      endif()
    endforeach()
    list(JOIN lacks ", " lacks)
    set(found "")
    file(GLOB runtimes ${nvidiaRoot}/*/lib/libcudart.so.*)
    foreach(runtime ${runtimes})
      get_filename_component(runtime ${runtime} NAME)
      string(APPEND found " The wheels beside torch have ${runtime}.")
    endforeach()
    if(CUDAToolkit_FOUND)
      string(APPEND found " The CUDA toolkit of this system is ${CUDAToolkit_VERSION}.")
    endif()
    set(advice "Install that LibTorch again with its NVIDIA packages")
    if(cudaMajor GREATER_EQUAL 13)
      string(APPEND advice " and nvidia-cuda-crt==${cudaVersion}.*")
    elseif(cudaMajor EQUAL 12)
      string(APPEND advice " and nvidia-cuda-nvcc-cu12==${cudaVersion}.*")
    endif()
    message(WARNING "libcleave_nccl is not built: LibTorch is for CUDA ${cudaVersion}, for which ${lacks} is missing."
      "${found} ${advice}, or install a CUDA ${cudaMajor} toolkit. Ranks run on CPUs only.")
  endif()
endif()
