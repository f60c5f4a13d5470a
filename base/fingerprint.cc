// SPDX-License-Identifier: Apache-2.0
#include "base/fingerprint.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"

namespace torch_lazy::base {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read in the machine's order");

constexpr uint64_t kC1 = 0x87c37b91114253d5, kC2 = 0x4cf5ad432745937f;

uint64_t Finish(uint64_t k) {
  k = (k ^ (k >> 33)) * 0xff51afd7ed558ccd;
  k = (k ^ (k >> 33)) * 0xc4ceb9fe1a85ec53;
  return k ^ (k >> 33);
}

}  // namespace

Fingerprint FingerprintOf(absl::string_view bytes) {
  uint64_t h1 = 0, h2 = 0;
  size_t at = 0;
  for (; at + 16 <= bytes.size(); at += 16) {
    uint64_t k[2];
    std::memcpy(k, bytes.data() + at, 16);
    h1 ^= std::rotl(k[0] * kC1, 31) * kC2;
    h1 = (std::rotl(h1, 27) + h2) * 5 + 0x52dce729;
    h2 ^= std::rotl(k[1] * kC2, 33) * kC1;
    h2 = (std::rotl(h2, 31) + h1) * 5 + 0x38495ab5;
  }
  uint64_t tail[2] = {0, 0};  // bytes past the end count as 0; the length below tells them from real ones
  if (at < bytes.size()) std::memcpy(tail, bytes.data() + at, bytes.size() - at);
  h2 ^= std::rotl(tail[1] * kC2, 33) * kC1;
  h1 ^= std::rotl(tail[0] * kC1, 31) * kC2;

  h1 ^= bytes.size();
  h2 ^= bytes.size();
  h1 += h2;
  h2 += h1;
  h1 = Finish(h1);
  h2 = Finish(h2);
  h1 += h2;
  h2 += h1;
  return {h1, h2};
}

std::string Fingerprint::ToString() const { return absl::StrFormat("%016x%016x", high, low); }

}  // namespace torch_lazy::base
