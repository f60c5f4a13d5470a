// SPDX-License-Identifier: Apache-2.0
// libtorch_lazy_cuda.so: products by cuBLASLt, the library that PyTorch has loaded, with its workspace.
//
// cuBLASLt's matrices go down their columns, so it is asked for the transposed result: y' x', each of which lies in
// memory as it does.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "lazy/cuda/graphs.h"
#include "lazy/cuda/products.h"

extern "C" const torch_lazy::lazy::CudaGraphs* torch_lazy_cuda_graphs();

namespace torch_lazy::lazy {
namespace {

constexpr uint32_t kAlignment = 16;  // bytes, of all addresses
constexpr int kMostCandidates = 8;

template <auto Destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* descriptor) const {
    Destroy(descriptor);
  }
};
using Operation = std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroyer<cublasLtMatmulDescDestroy>>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroyer<cublasLtMatrixLayoutDestroy>>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroyer<cublasLtMatmulPreferenceDestroy>>;

struct Product {
  Operation operation;
  Layout x, y, result;
  cublasLtMatmulAlgo_t algorithm = {};
};

std::optional<cudaDataType_t> TypeOf(at::ScalarType dtype) {
  if (dtype == at::kHalf) return CUDA_R_16F;
  if (dtype == at::kBFloat16) return CUDA_R_16BF;
  if (dtype == at::kFloat) return CUDA_R_32F;
  return std::nullopt;
}

cublasComputeType_t ComputeTypeOf(at::ScalarType dtype) {
  const bool is_tf32 =
      dtype == at::kFloat && at::globalContext().float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) ==
                                 at::Float32Precision::TF32;
  return is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// Whether its columns, and not its rows, lie together; nothing if neither do.
std::optional<bool> IsTransposed(const at::Tensor& matrix) {
  if (matrix.stride(-1) == 1 && matrix.stride(-2) >= matrix.size(-1)) return false;
  if (matrix.stride(-2) == 1 && matrix.stride(-1) >= matrix.size(-2)) return true;
  return std::nullopt;
}

Layout LayoutOf(const at::Tensor& matrix, bool is_transposed) {
  const int64_t together = matrix.size(is_transposed ? -2 : -1), others = matrix.size(is_transposed ? -1 : -2);
  cublasLtMatrixLayout_t made = nullptr;
  if (cublasLtMatrixLayoutCreate(&made, *TypeOf(matrix.scalar_type()), static_cast<uint64_t>(together),
                                 static_cast<uint64_t>(others),
                                 matrix.stride(is_transposed ? -1 : -2)) != CUBLAS_STATUS_SUCCESS) {
    return nullptr;
  }
  Layout layout(made);
  if (matrix.dim() == 2) return layout;
  const int32_t count = static_cast<int32_t>(matrix.size(0));
  const int64_t stride = matrix.stride(0);
  const bool is_set = cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                       sizeof(count)) == CUBLAS_STATUS_SUCCESS &&
                      cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                       sizeof(stride)) == CUBLAS_STATUS_SUCCESS;
  return is_set ? std::move(layout) : nullptr;
}

template <typename T>
bool Set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  return cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof(value)) == CUBLAS_STATUS_SUCCESS;
}

bool SetBias(const Operation& operation, const at::Tensor& bias) {
  const void* const address = bias.const_data_ptr();
  return Set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, address);
}

Operation OperationOf(const ProductTensors& tensors, bool is_x_transposed, bool is_y_transposed) {
  cublasLtMatmulDesc_t made = nullptr;
  if (cublasLtMatmulDescCreate(&made, ComputeTypeOf(tensors.x.scalar_type()), CUDA_R_32F) != CUBLAS_STATUS_SUCCESS)
    return nullptr;
  Operation operation(made);
  const cublasOperation_t of_x = is_x_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          of_y = is_y_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  if (!Set(operation, CUBLASLT_MATMUL_DESC_TRANSA, of_y) || !Set(operation, CUBLASLT_MATMUL_DESC_TRANSB, of_x))
    return nullptr;
  if (!tensors.bias.defined()) return operation;
  const cublasLtEpilogue_t epilogue = tensors.is_relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  const bool is_set = Set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) && SetBias(operation, tensors.bias);
  return is_set ? std::move(operation) : nullptr;
}

void* Make(const ProductTensors& tensors) {
  const std::optional<bool> is_x_transposed = IsTransposed(tensors.x), is_y_transposed = IsTransposed(tensors.y),
                            is_result_transposed = IsTransposed(tensors.result);
  if (!TypeOf(tensors.x.scalar_type()) || !is_x_transposed || !is_y_transposed || is_result_transposed != false)
    return nullptr;
  auto product = std::make_unique<Product>();
  product->operation = OperationOf(tensors, *is_x_transposed, *is_y_transposed);
  product->x = LayoutOf(tensors.x, *is_x_transposed);
  product->y = LayoutOf(tensors.y, *is_y_transposed);
  product->result = LayoutOf(tensors.result, false);
  const bool is_made =
      product->operation != nullptr && product->x != nullptr && product->y != nullptr && product->result != nullptr;
  return is_made ? product.release() : nullptr;
}

Preference MakePreference() {
  cublasLtMatmulPreference_t made = nullptr;
  if (cublasLtMatmulPreferenceCreate(&made) != CUBLAS_STATUS_SUCCESS) return nullptr;
  Preference preference(made);
  const uint64_t workspace = at::cuda::getCUDABlasLtWorkspaceSize();
  bool is_set = cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                     sizeof(workspace)) == CUBLAS_STATUS_SUCCESS;
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    is_set = is_set && cublasLtMatmulPreferenceSetAttribute(made, attribute, &kAlignment, sizeof(kAlignment)) ==
                           CUBLAS_STATUS_SUCCESS;
  }
  return is_set ? std::move(preference) : nullptr;
}

// An algorithm's bytes in hexadecimal digits, and back.
std::string WordOf(const cublasLtMatmulAlgo_t& algorithm) {
  std::string word;
  for (const uint64_t part : algorithm.data) {
    char digits[17];
    std::snprintf(digits, sizeof(digits), "%016lx", static_cast<unsigned long>(part));
    word += digits;
  }
  return word;
}

bool Read(const std::string& word, cublasLtMatmulAlgo_t* algorithm) {
  constexpr size_t kParts = std::size(cublasLtMatmulAlgo_t{}.data);
  if (word.size() != kParts * 16) return false;
  for (size_t k = 0; k < kParts; ++k) {
    unsigned long part = 0;
    if (std::sscanf(word.substr(k * 16, 16).c_str(), "%16lx", &part) != 1) return false;
    algorithm->data[k] = part;
  }
  return true;
}

std::vector<std::string> Candidates(void* made) {
  const auto* const product = static_cast<const Product*>(made);
  const Preference preference = MakePreference();
  if (preference == nullptr) return {};
  std::array<cublasLtMatmulHeuristicResult_t, kMostCandidates> results = {};
  int count = 0;
  const cublasLtHandle_t handle = at::cuda::getCurrentCUDABlasLtHandle();
  if (cublasLtMatmulAlgoGetHeuristic(handle, product->operation.get(), product->y.get(), product->x.get(),
                                     product->result.get(), product->result.get(), preference.get(), kMostCandidates,
                                     results.data(), &count) != CUBLAS_STATUS_SUCCESS) {
    return {};
  }
  std::vector<std::string> words;
  for (int k = 0; k < count; ++k) {
    if (results[k].state == CUBLAS_STATUS_SUCCESS) words.push_back(WordOf(results[k].algo));
  }
  return words;
}

bool Choose(void* made, const std::string& word) {
  auto* const product = static_cast<Product*>(made);
  cublasLtMatmulAlgo_t algorithm = {};
  cublasLtMatmulHeuristicResult_t result = {};
  if (!Read(word, &algorithm)) return false;
  const cublasLtHandle_t handle = at::cuda::getCurrentCUDABlasLtHandle();
  if (cublasLtMatmulAlgoCheck(handle, product->operation.get(), product->y.get(), product->x.get(),
                              product->result.get(), product->result.get(), &algorithm,
                              &result) != CUBLAS_STATUS_SUCCESS ||
      result.workspaceSize > at::cuda::getCUDABlasLtWorkspaceSize()) {
    return false;
  }
  product->algorithm = algorithm;
  return true;
}

bool IsAligned(const at::Tensor& tensor) {
  return !tensor.defined() || reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kAlignment == 0;
}

bool Run(void* made, const ProductTensors& tensors) {
  const auto* const product = static_cast<const Product*>(made);
  for (const at::Tensor* tensor : {&tensors.x, &tensors.y, &tensors.bias, &tensors.result}) {
    if (!IsAligned(*tensor)) return false;
  }
  if (tensors.bias.defined() && !SetBias(product->operation, tensors.bias)) return false;
  const c10::cuda::CUDAGuard on(tensors.result.device());
  const float one = 1, zero = 0;
  void* const result = tensors.result.mutable_data_ptr();
  return cublasLtMatmul(at::cuda::getCurrentCUDABlasLtHandle(), product->operation.get(), &one,
                        tensors.y.const_data_ptr(), product->y.get(), tensors.x.const_data_ptr(), product->x.get(),
                        &zero, result, product->result.get(), result, product->result.get(), &product->algorithm,
                        at::cuda::getCUDABlasLtWorkspace(), at::cuda::getCUDABlasLtWorkspaceSize(),
                        at::cuda::getCurrentCUDAStream()) == CUBLAS_STATUS_SUCCESS;
}

struct DestroyGraph {
  void operator()(void* graph) const { torch_lazy_cuda_graphs()->destroy(graph); }
};
using Graph = std::unique_ptr<void, DestroyGraph>;

// What runs does, as plans' CUDA graphs do it; null if it cannot be captured.
Graph Captured(const std::function<void()>& runs) {
  const CudaGraphs& graphs = *torch_lazy_cuda_graphs();
  void* const graph = graphs.begin(/*lane=*/0);
  bool ran = true;
  try {
    runs();
  } catch (const std::exception&) {
    ran = false;
  }
  try {
    graphs.end(graph);
  } catch (const std::exception&) {
    return nullptr;
  }
  Graph captured(graph);
  return ran ? std::move(captured) : nullptr;
}

// The time of a run, by the fastest of some timings.
double Seconds(const std::function<void()>& run, bool in_graph) {
  constexpr int kRuns = 3;
  constexpr int64_t kCycles = 80'000;  // 40 us: until then the host has sent all
  const auto runs = [&] {
    for (int k = 0; k < kRuns; ++k) run();
  };
  run();
  const Graph graph = in_graph ? Captured(runs) : nullptr;
  if (graph != nullptr) torch_lazy_cuda_graphs()->replay(graph.get());
  double fastest = std::numeric_limits<double>::infinity();
  for (int timing = 0; timing < (in_graph ? 2 : 1); ++timing) {
    at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
    at::cuda::sleep(kCycles);
    begin.record();
    if (graph != nullptr) {
      torch_lazy_cuda_graphs()->replay(graph.get());
    } else {
      runs();
    }
    end.record();
    end.synchronize();
    fastest = std::min(fastest, begin.elapsed_time(end) / 1e3 / kRuns);
  }
  return fastest;
}

std::string Machine() {
  const cudaDeviceProp* const device = at::cuda::getCurrentDeviceProperties();
  return std::string(device->name) + " cublaslt " + std::to_string(cublasLtGetVersion());
}

bool IsCapturing() { return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None; }

// What throws, out of PyTorch, has done nothing.
template <auto Function, typename Result, typename... Arguments>
Result Or(Result otherwise, Arguments&&... arguments) {
  try {
    return Function(std::forward<Arguments>(arguments)...);
  } catch (const std::exception&) {
    return otherwise;
  }
}

constexpr CudaProducts kProducts{
    .machine = [] { return Or<Machine>(std::string()); },
    .make = [](const ProductTensors& tensors) { return Or<Make>(static_cast<void*>(nullptr), tensors); },
    .candidates = [](void* product) { return Or<Candidates>(std::vector<std::string>(), product); },
    .choose = [](void* product, const std::string& word) { return Or<Choose>(false, product, word); },
    .run = [](void* product, const ProductTensors& tensors) { return Or<Run>(false, product, tensors); },
    .seconds = [](const std::function<void()>& run,
                  bool in_graph) { return Or<Seconds>(std::numeric_limits<double>::infinity(), run, in_graph); },
    .is_capturing = [] { return Or<IsCapturing>(true); },
};

}  // namespace
}  // namespace torch_lazy::lazy

extern "C" const torch_lazy::lazy::CudaProducts* torch_lazy_cuda_products() { return &torch_lazy::lazy::kProducts; }
