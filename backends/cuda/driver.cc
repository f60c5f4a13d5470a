// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver.h"

#include "absl/strings/str_cat.h"
#include "backends/cuda/library.h"
#include "base/check.h"
#include "base/status.h"

namespace torch_lazy::backends::cuda {
namespace {

absl::StatusOr<const Driver*> OpenDriver() {
  LAZY_ASSIGN_OR_RETURN(void* const library, OpenLibrary({"libcuda.so.1"}, "CUDA's driver"));
  static Driver driver;
#define X(Name, symbol, parameters) LAZY_RETURN_IF_ERROR(FindSymbol(library, symbol, &driver.Name));
  TORCH_LAZY_DRIVER_LIST(X)
#undef X
  LAZY_RETURN_IF_ERROR(StatusOf(driver, driver.Init(0), "cuInit"));
  return &driver;
}

}  // namespace

absl::StatusOr<const Driver*> FindDriver() {
  static const auto& driver = *new absl::StatusOr<const Driver*>(OpenDriver());
  return driver;
}

std::string ErrorText(const Driver& driver, Result result, const std::string& what) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver.GetErrorName(result, &name);
  driver.GetErrorString(result, &text);
  return absl::StrCat(what, ": ", name == nullptr ? absl::StrCat("error ", result) : name,
                      text == nullptr ? "" : ": ", text == nullptr ? "" : text);
}

absl::Status StatusOf(const Driver& driver, Result result, const std::string& what) {
  return result == 0 ? absl::OkStatus() : absl::InternalError(ErrorText(driver, result, what));
}

CurrentContext::CurrentContext(const Driver& driver, Context context) : driver_(driver) {
  LAZY_CHECK_CUDA(driver_, CtxGetCurrent(&before_), "cuCtxGetCurrent");
  if (before_ == context) return;
  changed_ = true;
  LAZY_CHECK_CUDA(driver_, CtxSetCurrent(context), "cuCtxSetCurrent");
}

CurrentContext::~CurrentContext() {
  if (changed_) driver_.CtxSetCurrent(before_);
}

}  // namespace torch_lazy::backends::cuda
