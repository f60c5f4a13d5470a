// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/raise.h"

#include <exception>
#include <new>

#include <c10/util/Exception.h>

#include "backends/backend.h"

namespace torch_lazy::lazy {

void RaiseIfError(const absl::Status& status) {
  if (status.ok()) return;
  const std::string text(status.message());
  TORCH_CHECK_WITH(OutOfMemoryError, !absl::IsResourceExhausted(status), text);
  if (const std::optional<int> number = backends::NumberOfDeviceError(status)) {
    throw c10::AcceleratorError(c10::SourceLocation::current(), *number, text);
  }
  TORCH_CHECK(false, "lazy: ", text);
}

absl::Status StatusOfError() {
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const c10::AcceleratorError& error) {
    return backends::DeviceError(absl::StatusCode::kInternal, error.get_error_code(), error.what_without_backtrace());
  } catch (...) {
    return absl::InternalError(TextOfError());
  }
}

std::string TextOfError() {
  try {
    throw;
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown error";
  }
}

}  // namespace torch_lazy::lazy
