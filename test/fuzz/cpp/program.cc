// SPDX-License-Identifier: Apache-2.0
#include "test/fuzz/cpp/program.h"

#include <cmath>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace torch_lazy::fuzz {
std::string Step::Text() const {
  std::string text = form().text;
  const std::pair<const char*, std::string> names[] = {
      {"a", absl::StrCat("t", a)},
      {"b", absl::StrCat("t", b)},
      {"c", absl::StrCat("t", c)},
      {"out", absl::StrCat("t", out)},
      {"out2", absl::StrCat("t", out + 1)},
      {"number", absl::StrCat(number)},
      {"extent", absl::StrCat(extent)},
      {"shape", absl::StrCat("at::IntArrayRef({", absl::StrJoin(shape, ", "), "})")},
      {"dtype", absl::StrCat("at::k", c10::toString(dtype))},
  };
  for (const auto& [name, value] : names) {
    const char* unlike_call = name == absl::string_view("dtype") ? "(?!\\()" : "";  // at::dtype(...) is a function
    const std::regex word(absl::StrCat("(^|[^:\\w])", name, "\\b", unlike_call));
    text = std::regex_replace(text, word, absl::StrCat("$01", value));
  }
  return text;
}

std::string Write(const Program& program) {
  std::ostringstream text;
  for (const Step& step : program) {
    text << step.kind << ' ' << step.line << ' ' << step.a << ' ' << step.b << ' ' << step.c << ' ' << step.out << ' '
         << step.number << ' ' << step.extent << ' ' << static_cast<int>(step.dtype) << ' ' << step.shape.size();
    for (const int64_t size : step.shape) text << ' ' << size;
    text << '\n';
  }
  return text.str();
}

Program Read(const std::string& text) {
  Program program;
  std::istringstream in(text);
  Step step;
  int dtype;
  size_t dims;
  while (in >> step.kind >> step.line >> step.a >> step.b >> step.c >> step.out >> step.number >> step.extent >>
         dtype >> dims) {
    step.dtype = static_cast<at::ScalarType>(dtype);
    step.shape.resize(dims);
    for (int64_t& size : step.shape) in >> size;
    program.push_back(step);
  }
  return program;
}

void Machine::Run(const Step& step) {
  const size_t count = std::max({step.a, step.b, step.c, step.out + 1}) + 1;
  if (tensors_.size() < count) {
    tensors_.resize(count);
    born_.resize(count);
  }
  std::string note;
  Frame frame{tensors_[step.a],
              tensors_[step.b],
              tensors_[step.c],
              tensors_[step.out],
              tensors_[step.out + 1],
              note,
              step.number,
              step.extent,
              step.shape,
              step.dtype,
              device_};
  std::string error;
  try {
    // PyTorch does not always look whether there is a tensor.
    for (const auto& [name, tensor] : {std::pair("a", &frame.a), std::pair("b", &frame.b), std::pair("c", &frame.c)}) {
      if (step.form().Says(name) && !tensor->defined()) throw std::logic_error("no tensor");
    }
    step.form().run(frame);
  } catch (const std::exception& thrown) {
    error = typeid(thrown).name();
  }
  errors_.push_back(std::move(error));
  notes_.push_back(std::move(note));
  for (const int number : {step.a, step.b, step.c, step.out, step.out + 1}) {
    const at::Tensor& tensor = tensors_[number];
    if (!tensor.defined() || born_[number].tensor.lock().get() == tensor.unsafeGetTensorImpl()) continue;
    born_[number] = {c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()), tensor._version()};
  }
}

at::Tensor Machine::GradOf(size_t number) const {
  const at::Tensor& tensor = tensors_[number];
  return tensor.defined() && tensor.is_leaf() ? tensor.grad() : at::Tensor();
}

std::unique_ptr<Machine> RunOn(at::Device device, const Program& program) {
  at::manual_seed(0);
  auto machine = std::make_unique<Machine>(device);
  for (const Step& step : program) machine->Run(step);
  return machine;
}

bool IsExact(const Machine& machine) {
  constexpr double kLargest = 128;  // products of two, summed 32 times, are exact in single precision
  constexpr int64_t kMostNumbers = 4000, kMostBytes = 64000;
  const auto is_exact = [](const at::Tensor& tensor) {
    if (tensor.numel() > kMostNumbers || static_cast<int64_t>(tensor.storage().nbytes()) > kMostBytes) return false;
    const at::Tensor quarters = tensor.detach().to(at::kDouble) * 4;
    return quarters.isfinite().all().item<bool>() && quarters.eq(quarters.round()).all().item<bool>() &&
           (!tensor.is_floating_point() || quarters.abs().le(4 * kLargest).all().item<bool>());
  };
  for (size_t i = 0; i < machine.tensors().size(); ++i) {
    if (machine.tensors()[i].defined() && !is_exact(machine.tensors()[i])) return false;
    if (const at::Tensor grad = machine.GradOf(i); grad.defined() && !is_exact(grad)) return false;
  }
  return true;
}

}  // namespace torch_lazy::fuzz
