// SPDX-License-Identifier: Apache-2.0
#include "device/eager_overrides/cuda_dropout.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_dropout.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "base/log.h"
#include "ir/philox.h"
#include "lazy/cuda/philox.h"

namespace torch_lazy::device {
namespace {

constexpr int64_t kBlock = 256;   // threads
constexpr int64_t kAccess = 16;   // bytes
constexpr int64_t kTogether = 4;  // numbers that a thread draws at once
constexpr double kProbability = 0.5;

int64_t MostThreads(lazy::Multiprocessors gpu) { return gpu.count * (gpu.threads_of_each / kBlock) * kBlock; }

int64_t ThreadsFor(int64_t count, lazy::Multiprocessors gpu) {
  return std::min(MostThreads(gpu), (count + kBlock - 1) / kBlock * kBlock);
}

// The kernel has its probability in the type that it computes in.
double Kept(at::ScalarType dtype, double p) {
  return dtype == at::kDouble ? 1 - p : static_cast<double>(static_cast<float>(1 - p));
}

// As curand_uniform.
float Uniform(int64_t number) { return static_cast<float>(static_cast<uint32_t>(number)) * 0x1p-32F + 0x1p-33F; }

// The first and the last elements of so many, as drawn by CUDA and as we would.
bool DrawsAlike(at::ScalarType dtype, int64_t width, int64_t count) {
  constexpr int64_t kMost = 4096;  // elements compared at each end
  const lazy::PhiloxDraw draw = {.seed = 0x123456789abcdef, .offset = 8};
  // Not seen by the program's modes, nor by autograd.
  const c10::impl::ForceDispatchKeyGuard no_modes{c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})};
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  at::Tensor mask;
  {
    const lazy::DrawScope scope(draw);
    mask = std::get<1>(at::native_dropout(at::empty({count}, at::device(lazy::EagerDevice()).dtype(dtype)),
                                          kProbability, /*train=*/true))
               .cpu();
  }
  const bool* const drawn = mask.const_data_ptr<bool>();
  const ir::PhiloxLaunch launch = {draw.seed, draw.offset, ThreadsFor(count, lazy::MultiprocessorsOfGpu()), width};
  const int64_t threshold = ThresholdOf(dtype, kProbability);
  const auto is_alike = [&](int64_t index) { return drawn[index] == (ir::PhiloxAt(launch, index) < threshold); };
  for (int64_t k = 0; k < std::min(kMost, count); ++k) {
    if (!is_alike(k) || !is_alike(count - 1 - k)) return false;
  }
  return true;
}

}  // namespace

DropoutLaunch LaunchOf(const at::Tensor& input, lazy::Multiprocessors gpu) {
  const int64_t count = input.numel(), threads = ThreadsFor(count, gpu);
  int64_t width = 1;
  if (input.is_non_overlapping_and_dense()) {
    width = kAccess / static_cast<int64_t>(input.itemsize());
    while ((input.storage_offset() | count) % width != 0) width /= 2;
  }
  std::vector<int64_t> order(static_cast<size_t>(input.dim()));
  std::iota(order.begin(), order.end(), 0);
  if (width > 1) {  // in memory's order
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return input.stride(a) > input.stride(b); });
  }
  const int64_t numbers = ((count - 1) / (threads * kTogether) + 1) * kTogether;
  return {threads, width, std::move(order), static_cast<uint64_t>(numbers)};
}

int64_t ThresholdOf(at::ScalarType dtype, double p) {
  const double kept = Kept(dtype, p);
  int64_t low = 0, high = int64_t{1} << 32;  // Uniform grows with its number
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (Uniform(middle) < kept) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

double ScaleOf(at::ScalarType dtype, double p) {
  const double scale = 1.0 / Kept(dtype, p);
  return dtype == at::kDouble ? scale : static_cast<double>(static_cast<float>(scale));
}

bool DrawsAsKnown(at::ScalarType dtype, int64_t width) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const known = new std::map<std::pair<at::ScalarType, int64_t>, bool>;
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto [found, is_new] = known->try_emplace({dtype, width}, false);
  if (!is_new) return found->second;
  constexpr int64_t kFew = 257;  // odd: wider accesses would leave a remainder
  const int64_t round = MostThreads(lazy::MultiprocessorsOfGpu()) * (width == 1 ? kTogether : 1);
  found->second = DrawsAlike(dtype, width, width * kFew) && DrawsAlike(dtype, width, width * (round + kFew));
  if (!found->second)
    base::WarnOnce("dropout",
                   "PyTorch's CUDA kernel of dropout draws in a way that is not known: masks are drawn by it");
  return found->second;
}

}  // namespace torch_lazy::device
