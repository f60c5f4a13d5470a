// SPDX-License-Identifier: Apache-2.0
#include "backends/backend.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace torch_lazy::backends {
namespace {

constexpr char kNumber[] = "torch_lazy/device_error";

}  // namespace

absl::Status DeviceError(absl::StatusCode code, int number, absl::string_view text) {
  absl::Status status(code, text);
  status.SetPayload(kNumber, absl::Cord(absl::StrCat(number)));
  return status;
}

std::optional<int> NumberOfDeviceError(const absl::Status& status) {
  const absl::optional<absl::Cord> text = status.GetPayload(kNumber);
  int number = 0;
  if (!text.has_value() || !absl::SimpleAtoi(std::string(*text), &number)) return std::nullopt;
  return number;
}

}  // namespace torch_lazy::backends
