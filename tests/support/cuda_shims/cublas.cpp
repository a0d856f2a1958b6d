// cuBLAS: handles and their math mode. cublasSgemm computes; all other products do nothing.
#include <cublas_v2.h>

#include "device.h"
#include "settings.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace cleave::shims;

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasMath_t mathMode = CUBLAS_DEFAULT_MATH;
  bool hasMathMode = false;  ///< set by the program
  std::size_t workspaceBytes = 0;
  cublasPointerMode_t pointerMode = CUBLAS_POINTER_MODE_HOST;
  /// NVIDIA_TF32_OVERRIDE=1: float32 products are rounded to TF32 whatever the math mode.
  bool isTf32Forced = std::string_view(std::getenv("NVIDIA_TF32_OVERRIDE") ?: "") == "1";
};

namespace {

std::atomic<std::int64_t> products{0}, productsInTf32{0};

void note(const char* name, const cublasContext& handle, cublasComputeType_t compute) {
  const bool mayBeTf32 = handle.isTf32Forced || (handle.mathMode & CUBLAS_TF32_TENSOR_OP_MATH) != 0;
  const bool isTf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32 || (compute == CUBLAS_COMPUTE_32F && mayBeTf32);
  ++products;
  if (isTf32) ++productsInTf32;
  if (settings().cublasTf32) {
    logLine(std::string(name) + " compute=" + std::to_string(compute) + " mode=" + std::to_string(handle.mathMode) +
            " tf32=" + std::to_string(isTf32));
  }
}

__attribute__((constructor)) void begin() {
  atEnd([] {
    if (products > 0)
      logLine("cublas products=" + std::to_string(products) + " tf32=" + std::to_string(productsInTf32));
  });
}

/// Column-major.
struct Matrix {
  const float* data;
  int leading;
  bool isTransposed;
  float at(int row, int column) const {
    return isTransposed ? data[column + static_cast<std::ptrdiff_t>(row) * leading]
                        : data[row + static_cast<std::ptrdiff_t>(column) * leading];
  }
};

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (!handle->hasMathMode || handle->mathMode != mode) {
    const bool allowsTf32 = (mode & CUBLAS_TF32_TENSOR_OP_MATH) != 0;
    logLine("cublasSetMathMode mode=" + std::to_string(mode) + " tf32=" + std::to_string(allowsTf32));
  }
  handle->hasMathMode = true;
  handle->mathMode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  *mode = handle->mathMode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->pointerMode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  *mode = handle->pointerMode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void*, std::size_t bytes) {
  if (handle->workspaceBytes != bytes) logLine("cublasSetWorkspace bytes=" + std::to_string(bytes));
  handle->workspaceBytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transposeA, cublasOperation_t transposeB, int m,
                              int n, int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
  note("cublasSgemm", *handle, CUBLAS_COMPUTE_32F);
  if (handle->pointerMode != CUBLAS_POINTER_MODE_HOST) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Matrix left{a, lda, transposeA != CUBLAS_OP_N}, right{b, ldb, transposeB != CUBLAS_OP_N};
  streamOf(handle->stream).run([=, factor = *alpha, kept = *beta] {
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        float sum = 0;
        for (int i = 0; i < k; ++i) sum += left.at(row, i) * right.at(i, column);
        float& out = c[row + static_cast<std::ptrdiff_t>(column) * ldc];
        out = factor * sum + (kept == 0 ? 0 : kept * out);
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int, int, int,
                                         const float*, const float*, int, long long int, const float*, int,
                                         long long int, const float*, float*, int, long long int, int) {
  note("cublasSgemmStridedBatched", *handle, CUBLAS_COMPUTE_32F);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                            const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                            cudaDataType, int, cublasComputeType_t compute, cublasGemmAlgo_t) {
  note("cublasGemmEx", *handle, compute);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int, int, int,
                                          const void*, const void*, cudaDataType, int, long long int, const void*,
                                          cudaDataType, int, long long int, const void*, void*, cudaDataType, int,
                                          long long int, int, cublasComputeType_t compute, cublasGemmAlgo_t) {
  note("cublasGemmStridedBatchedEx", *handle, compute);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
