// SPDX-License-Identifier: Apache-2.0
// CUDA kernels by hand, and what they must compute, on whichever backend runs such.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "backends/backend.h"
#include "gtest/gtest.h"

namespace torch_lazy::backends {

// A kernel whose two entries call `body`: statements that know `a` (struct Arguments) and `block`
// (of the instance). `members`: of Arguments, after `iterations`.
inline codegen::Kernel BlockKernelText(const std::string& name, int threads, int64_t iterations_per_block,
                                       const std::string& members, const std::string& body) {
  static constexpr char kText[] = R"(
struct Arguments {
  const double* scalars;
  long iterations;
  MEMBERS
};
static __device__ __forceinline__ void Run(const Arguments& a, long block) {
  BODY
}
extern "C" __global__ void __launch_bounds__(THREADS) NAME(const __grid_constant__ Arguments one) {
  Run(one, blockIdx.x);
}
extern "C" __global__ void __launch_bounds__(THREADS)
NAME_many(const Arguments* many, const int* first_block, int count) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first_block[middle] <= (int)blockIdx.x) low = middle; else high = middle;
  }
  Run(many[low], (long)blockIdx.x - first_block[low]);
}
)";
  codegen::Kernel kernel;
  kernel.name = name;
  kernel.threads = threads;
  kernel.iterations_per_block = iterations_per_block;
  kernel.source = absl::StrReplaceAll(
      kText, {{"MEMBERS", members}, {"BODY", body}, {"THREADS", std::to_string(threads)}, {"NAME", name}});
  return kernel;
}

// y[i] = scalar 0 * x[i] + extent 0, two iterations a thread.
inline codegen::Kernel ScaleKernel() {
  return BlockKernelText("scale", 64, 128, "void* buffers[2]; long extents[1];", R"(
  for (long i = block * 128 + threadIdx.x, k = 0; k < 2; ++k, i += 64) {
    if (i < a.iterations)
      ((float*)a.buffers[1])[i] = (float)a.scalars[0] * ((const float*)a.buffers[0])[i] +
                                  (float)a.extents[0];
  })");
}

// Sums of rows of extent 0 floats, a block each: by shuffles, then through shared memory.
inline codegen::Kernel RowSumKernel() {
  return BlockKernelText("row_sum", 256, 1, "void* buffers[2]; long extents[1];", R"(
  __shared__ float sums[8];
  const int t = threadIdx.x;
  const float* row = (const float*)a.buffers[0] + block * a.extents[0];
  float sum = 0;
  for (long j = t; j < a.extents[0]; j += 256) sum += row[j];
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
  if (t % 32 == 0) sums[t / 32] = sum;
  __syncthreads();
  if (t >= 32) return;
  sum = t < 8 ? sums[t] : 0.0f;
  for (int by = 4; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
  if (t == 0) ((float*)a.buffers[1])[block] = sum;)");
}

// Of 32 numbers a block: running sums, how many are negative, whether any is; and in buffer 2 the
// sum of all blocks' counts.
inline codegen::Kernel WarpKernel() {
  return BlockKernelText("warp", 32, 32, "void* buffers[3];", R"(
  const int lane = threadIdx.x;
  const long i = block * 32 + lane;
  int x = i < a.iterations ? ((const int*)a.buffers[0])[i] : 0;
  const unsigned negative = __ballot_sync(0xffffffffu, x < 0);
  const int any = __any_sync(0xffffffffu, x < 0) ? 1 : 0;
  for (int by = 1; by < 32; by *= 2) {
    const int below = __shfl_up_sync(0xffffffffu, x, by);
    if (lane >= by) x += below;
  }
  const int last = __shfl_sync(0xffffffffu, x, 31);
  __syncwarp();
  int4 result = make_int4(x, __popc(negative), any, last);
  if (i < a.iterations) ((int4*)a.buffers[1])[i] = result;
  if (lane == 0) atomicAdd((int*)a.buffers[2], __popc(negative));)");
}

// Writes 1 where CUDA's words mean what they mean there: one of each kind that kernels use.
inline codegen::Kernel WordsKernel() {
  return BlockKernelText("words", 64, 64, "void* buffers[1];", R"(
  const int t = threadIdx.x;
  const float x = t * 0.25f - 3;
  bool ok = fabsf(rsqrtf(4.0f) - 0.5f) < 1e-6f && __fmaf_rn(2.0f, 3.0f, x) == 6 + x;
  ok = ok && max(x, 2.0f) >= 2 && min(t, 5) <= 5 && fmaxf(x, x) == x && fabs(pow(2.0, 3.0) - 8) < 1e-12;
  ok = ok && __int_as_float(__float_as_int(x)) == x && !isnan(x - x) && isinf(1.0f / 0.0f);
  ok = ok && __longlong_as_double(__double_as_longlong(1.5)) == 1.5 && __umulhi(1u << 31, 4u) == 2;
  ok = ok && __float2int_rn(2.5f) == 2 && __float2int_rz(-2.7f) == -2 && __float2int_rd(-2.5f) == -3;
  ok = ok && __float2int_rz(1e20f) == 2147483647 && __double2ll_rz(-1e300) == -9223372036854775807L - 1;
  ok = ok && __float2uint_rz(-1.0f) == 0 && __ll2float_rn(3) == 3.0f && __uint2float_rn(7u) == 7.0f;
  ok = ok && fabsf(erff(0.0f)) == 0 && fabsf(expf(1.0f) - 2.7182817f) < 1e-5f && __fdiv_rn(x, 2.0f) == x / 2;
  ok = ok && fabs(tanh(0.5) - 0.46211715726000979) < 1e-12 && copysignf(1.0f, -0.0f) == -1.0f;
  ok = ok && __popc(255u) == 8 && __clz(1) == 31 && __ffs(8) == 4 && __brev(1u) == 1u << 31;
  const float4 v = make_float4(1, 2, 3, 4);
  const double2 w = make_double2(1, 2);
  ok = ok && sizeof(v) == 16 && alignof(float4) == 16 && alignof(int2) == 8 && v.w == 4 && w.y == 2;
  ok = ok && blockDim.x == 64 && gridDim.x >= 1 && __all_sync(0xffffffffu, t >= 0);
  ((float*)a.buffers[0])[block * 64 + t] = ok;)");
}

// Memory of a backend, and the ways there and back.
struct BlockMemory {
  Backend& backend;
  std::function<void(void* to, const void* from, size_t size_bytes)> to_device;
  std::function<void(void* to, const void* from, size_t size_bytes)> to_host;
};

// An array in it.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(BlockMemory& memory, const std::vector<T>& values) : memory_(memory), size_(values.size()) {
    data_ = memory_.backend.Allocate(size_ * sizeof(T) + 1);
    memory_.to_device(data_, values.data(), size_ * sizeof(T));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { memory_.backend.Free(data_, size_ * sizeof(T) + 1); }
  void* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(size_);
    memory_.to_host(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  BlockMemory& memory_;
  const size_t size_;
  void* data_;
};

inline std::shared_ptr<Module> CompileBlockKernels(Backend& backend, const std::vector<codegen::Kernel>& kernels) {
  const std::shared_ptr<Module> module = backend.Compile(kernels, /*wait=*/true);
  EXPECT_TRUE(module->status().ok()) << module->status();
  return module;
}

// Launches `scale` once for arrays of these sizes and checks them.
void CheckScale(BlockMemory memory, const std::vector<int64_t>& sizes);
// Sums of so many rows, by one instance, or by one a row.
void CheckRowSums(BlockMemory memory, int64_t rows, int64_t columns, bool many);
void CheckWarps(BlockMemory memory, int64_t size);
void CheckWords(BlockMemory memory);

}  // namespace torch_lazy::backends
