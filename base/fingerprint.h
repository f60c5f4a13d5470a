// SPDX-License-Identifier: Apache-2.0
// A 128-bit name for bytes, the same on every run and machine.
//
// Names of kernels, traces and files in the disk cache come from here. It is MurmurHash3 (x64, 128
// bits): good against accidents, not against an adversary; whoever reads files that others may
// write must compare the full key.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace torch_lazy::base {

struct Fingerprint {
  uint64_t high = 0;
  uint64_t low = 0;

  std::string ToString() const;  // 32 hexadecimal digits
  friend bool operator==(const Fingerprint& a, const Fingerprint& b) { return a.high == b.high && a.low == b.low; }
  friend bool operator!=(const Fingerprint& a, const Fingerprint& b) { return !(a == b); }
  template <typename H>
  friend H AbslHashValue(H h, const Fingerprint& f) {
    return H::combine(std::move(h), f.high, f.low);
  }
};

Fingerprint FingerprintOf(absl::string_view bytes);

}  // namespace torch_lazy::base
