// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt's algorithms, as libtorch_lazy_cuda.so gives them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch_lazy::lazy {

// Operands and result of one product, or of one for each batch. `bias`, added to each row, may be undefined; ReLU comes
// after it.
struct ProductTensors {
  at::Tensor x, y, bias, result;
  bool is_relu = false;
};

// All may be asked of any thread; one product, of one at a time. None throws.
struct CudaProducts {
  // The library's version and the GPU: an algorithm means nothing elsewhere.
  std::string (*machine)();
  // Products of tensors that lie like these, whatever their addresses. It lives for ever. Null: cuBLASLt is not for
  // them.
  void* (*make)(const ProductTensors& tensors);
  // The algorithms its heuristics name first, as words.
  std::vector<std::string> (*candidates)(void* product);
  // From now on `run` takes this one. False: it does not do this product.
  bool (*choose)(void* product, const std::string& word);
  // On the current stream. False if nothing was done: memory that is not aligned.
  bool (*run)(void* product, const ProductTensors& tensors);
  // Seconds that the GPU works for one `run`, as part of a CUDA graph or of a stream. It is run some times.
  double (*seconds)(const std::function<void()>& run, bool in_graph);
  bool (*is_capturing)();
};

// Null where there are none.
const CudaProducts* FindCudaProducts();

}  // namespace torch_lazy::lazy
