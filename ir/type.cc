// SPDX-License-Identifier: Apache-2.0
#include "ir/type.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace torch_lazy::ir {
namespace {

struct DTypeInfo {
  absl::string_view name;
  int64_t size_bytes;
};
constexpr DTypeInfo kDTypes[] = {
    {"bool", 1}, {"u8", 1},   {"i8", 1},  {"i16", 2}, {"i32", 4}, {"i64", 8},
    {"f16", 2},  {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"c64", 8}, {"c128", 16},
};
static_assert(std::size(kDTypes) == static_cast<size_t>(DType::kC128) + 1);

}  // namespace

int64_t SizeBytes(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].size_bytes; }

absl::string_view Name(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

bool ParseDType(absl::string_view text, DType* dtype) {
  for (size_t i = 0; i < std::size(kDTypes); ++i) {
    if (kDTypes[i].name != text) continue;
    *dtype = static_cast<DType>(i);
    return true;
  }
  return false;
}

std::string Extent::ToString() const { return is_symbol() ? absl::StrCat("s", symbol()) : absl::StrCat(code_); }

std::string Type::ToString() const {
  auto append = [](std::string* out, Extent extent) { absl::StrAppend(out, extent.ToString()); };
  return absl::StrCat(Name(dtype), "[", absl::StrJoin(dims, ", ", append), "]");
}

int64_t NumElements(absl::Span<const Extent> dims, absl::Span<const int64_t> symbols) {
  int64_t count = 1;
  for (Extent extent : dims) count *= extent.Value(symbols);
  return count;
}

int64_t SizeBytes(const Type& type, absl::Span<const int64_t> symbols) {
  return NumElements(type.dims, symbols) * SizeBytes(type.dtype);
}

}  // namespace torch_lazy::ir
