// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver.h"

#include "absl/strings/str_cat.h"
#include "backends/backend.h"
#include "backends/cuda/library.h"
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

absl::Status StatusOf(const Driver& driver, Result result, const std::string& what) {
  if (result == 0) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  driver.GetErrorName(result, &name);
  driver.GetErrorString(result, &text);
  const std::string where = absl::StrCat(what, ": ", name == nullptr ? absl::StrCat("error ", result) : name);
  if (result == kOutOfMemory)
    return DeviceError(absl::StatusCode::kResourceExhausted, result, absl::StrCat("CUDA out of memory. (", where, ")"));
  return DeviceError(result == kDeinitialized ? absl::StatusCode::kCancelled : absl::StatusCode::kInternal, result,
                     absl::StrCat("CUDA error: ", text == nullptr ? "unknown" : text, " (", where, ")"));
}

CurrentContext::CurrentContext(const Driver& driver, Context context) : driver_(driver), status_(Change(context)) {}

absl::Status CurrentContext::Change(Context context) {
  LAZY_RETURN_IF_CUDA_ERROR(driver_, CtxGetCurrent(&before_), "cuCtxGetCurrent");
  if (before_ == context) return absl::OkStatus();
  LAZY_RETURN_IF_CUDA_ERROR(driver_, CtxSetCurrent(context), "cuCtxSetCurrent");
  changed_ = true;
  return absl::OkStatus();
}

CurrentContext::~CurrentContext() {
  if (changed_) driver_.CtxSetCurrent(before_);
}

}  // namespace torch_lazy::backends::cuda
