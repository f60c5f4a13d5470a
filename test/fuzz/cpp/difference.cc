// SPDX-License-Identifier: Apache-2.0
// Compares what a program left on a device with what it left on the CPU.
#include "absl/strings/str_cat.h"
#include "test/fuzz/cpp/program.h"

namespace torch_lazy::fuzz {
namespace {

template <class T>
std::string Unlike(const char* what, const T& actual, const T& expected) {
  if (actual == expected) return "";
  std::ostringstream text;
  text << what << ' ' << actual << " instead of " << expected;
  return text.str();
}

std::string TensorDifference(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.defined() != expected.defined()) return actual.defined() ? "defined" : "undefined";
  if (!expected.defined()) return "";
  if (!actual.is_privateuseone()) return absl::StrCat("on device ", actual.device().str());
  for (const std::string& text : {
           Unlike("dtype", actual.scalar_type(), expected.scalar_type()),
           Unlike("sizes", actual.sizes(), expected.sizes()),
           Unlike("strides", actual.strides(), expected.strides()),
           Unlike("offset", actual.storage_offset(), expected.storage_offset()),
           Unlike("requires_grad", actual.requires_grad(), expected.requires_grad()),
           Unlike("is_leaf", actual.is_leaf(), expected.is_leaf()),
       }) {
    if (!text.empty()) return text;
  }
  const at::Tensor numbers = actual.detach().cpu();
  if (numbers.equal(expected.detach())) return "";
  std::ostringstream text;
  text << "values\n" << numbers << "\ninstead of\n" << expected.detach();
  return text.str();
}

bool ShareStorage(const at::Tensor& one, const at::Tensor& other) {
  return one.defined() && other.defined() && one.storage().is_alias_of(other.storage());
}

}  // namespace

std::string Difference(const Machine& actual, const Machine& expected) {
  for (size_t i = 0; i < expected.errors().size(); ++i) {
    const std::string text = absl::StrCat(Unlike("error", actual.errors()[i], expected.errors()[i]),
                                          Unlike("note", actual.notes()[i], expected.notes()[i]));
    if (!text.empty()) return absl::StrCat("step ", i, ": ", text);
  }
  const std::vector<at::Tensor>&a = actual.tensors(), &e = expected.tensors();
  for (size_t i = 0; i < e.size(); ++i) {
    std::string text = TensorDifference(a[i], e[i]);
    if (text.empty() && e[i].defined()) text = Unlike("number of writes", actual.Writes(i), expected.Writes(i));
    if (!text.empty()) return absl::StrCat("t", i, ": ", text);
    text = TensorDifference(actual.GradOf(i), expected.GradOf(i));
    if (!text.empty()) return absl::StrCat("t", i, ".grad(): ", text);
    for (size_t j = 0; j < i; ++j) {
      if (ShareStorage(a[i], a[j]) != ShareStorage(e[i], e[j]))
        return absl::StrCat("t", j, " and t", i, ": aliases differ");
    }
  }
  return "";
}

}  // namespace torch_lazy::fuzz
