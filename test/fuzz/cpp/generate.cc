// SPDX-License-Identifier: Apache-2.0
#include "test/fuzz/cpp/generate.h"

#include <random>

#include "absl/strings/string_view.h"

namespace torch_lazy::fuzz {
namespace {

constexpr size_t kMostTensors = 9;
constexpr double kErrorsKept = 0.05;  // of the steps that raise
constexpr double kRepeated = 0.03;    // of the steps

class Generator {
 public:
  Generator(int seed, bool with_random_numbers) : engine_(seed) {
    for (const Kind& kind : Kinds())
      weights_.push_back(kind.name == absl::string_view("random") && !with_random_numbers ? 0 : kind.weight);
    at::manual_seed(0);
  }

  Program Make(size_t num_steps) {
    for (int i = 0; i < 3; ++i) Add(0);
    while (program_.size() < num_steps && is_exact_) {
      if (program_.size() > 8 && Chance(kRepeated)) {
        Repeat();
      } else {
        Add(std::discrete_distribution<int>(weights_.begin(), weights_.end())(engine_));
      }
    }
    return std::move(program_);
  }

 private:
  template <class T>
  const T& Pick(const std::vector<T>& from) {
    return from[std::uniform_int_distribution<size_t>(0, from.size() - 1)(engine_)];
  }
  bool Chance(double p) { return std::bernoulli_distribution(p)(engine_); }

  // A step that runs, or now and then one that raises. The program ends before one whose numbers are not exact.
  void Add(int kind) {
    for (int attempt = 0; attempt < 20 && is_exact_; ++attempt) {
      const Step step = Draw(kind);
      machine_.Run(step);
      is_exact_ = IsExact(machine_);
      const bool raises = !machine_.errors().back().empty();
      // One that raises halfway, in a backward pass or a list, has changed something.
      const bool is_kept = !raises || Kinds()[step.kind].name == absl::string_view("gradient") || Chance(kErrorsKept);
      if (is_exact_ && is_kept) {
        program_.push_back(step);
        return;
      }
    }
  }

  // The last steps again, as a loop would.
  void Repeat() {
    const Program body(program_.end() - std::uniform_int_distribution<int>(2, 8)(engine_), program_.end());
    for (int i = 0; i < 2; ++i) {
      for (const Step& step : body) {
        machine_.Run(step);
        is_exact_ = is_exact_ && IsExact(machine_);
        if (!is_exact_) return;
        program_.push_back(step);
      }
    }
  }

  Step Draw(int kind) {
    std::vector<int> tensors;
    for (size_t i = 0; i < machine_.tensors().size(); ++i) {
      if (machine_.tensors()[i].defined()) tensors.push_back(static_cast<int>(i));
    }
    const std::vector<int> recent(tensors.end() - std::min<ptrdiff_t>(tensors.size(), 5), tensors.end());
    Step step;
    step.kind = tensors.empty() ? 0 : tensors.size() > kMostTensors ? static_cast<int>(Kinds().size()) - 1 : kind;
    step.line = std::uniform_int_distribution<int>(0, static_cast<int>(Kinds()[step.kind].lines.size()) - 1)(engine_);
    if (!tensors.empty()) {
      step.a = Pick(Chance(0.5) ? recent : tensors);
      step.b = Pick(tensors);
      step.c = Pick(tensors);
    }
    step.out = next_;
    next_ += 2;
    step.number = Pick<double>({-2, -1, 0, 1, 2, 3, 0.5});
    step.extent = Pick(kExtents);
    const int dims = Pick<int>({0, 1, 1, 2, 2, 2, 3});
    for (int i = 0; i < dims; ++i) step.shape.push_back(Pick(kExtents));
    step.dtype = Pick<at::ScalarType>({at::kFloat, at::kFloat, at::kFloat, at::kFloat, at::kDouble, at::kBFloat16,
                                       at::kHalf, at::kLong, at::kInt, at::kBool, at::kByte});
    return step;
  }

  const std::vector<int64_t> kExtents = {1, 2, 2, 3, 3, 3, 4, 4, 6, 17};
  std::mt19937 engine_;
  std::vector<double> weights_;
  Machine machine_{at::kCPU};
  Program program_;
  bool is_exact_ = true;
  int next_ = 0;
};

}  // namespace

Program Generate(int seed, int num_steps, bool with_random_numbers) {
  return Generator(seed, with_random_numbers).Make(num_steps);
}

}  // namespace torch_lazy::fuzz
