// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/thread_positions.h"

#include "absl/strings/str_cat.h"

namespace torch_lazy::codegen::cuda {

std::vector<KernelText::Along> PlaceLoops(const std::vector<Loop>& loops, char letter, const std::string& number,
                                          KernelText* text) {
  std::vector<KernelText::Along> along;
  const auto name = [&](size_t k) { return absl::StrCat(std::string(1, letter), k); };
  for (size_t k = 0; k < loops.size(); ++k) along.push_back({&loops[k], loops.size() == 1 ? number : name(k)});
  if (loops.size() < 2) return along;
  const std::string rest = absl::StrCat(name(0), "_rest");
  text->Line(absl::StrCat("long ", rest, " = ", number, ";"));
  for (size_t k = loops.size(); k-- > 1;) {
    text->Line(absl::StrCat("const long ", name(k), " = lazy_index(", rest, ", ", text->Number(loops[k].extent), ");"));
  }
  text->Line(absl::StrCat("const long ", name(0), " = ", rest, ";"));
  return along;
}

namespace {

// Does the place step by one from iteration to iteration?
bool IsFlat(const Affine& index, absl::Span<const KernelText::Along> along) {
  Polynomial step = 1;
  for (size_t k = along.size(); k-- > 0;) {
    if (!(index.CoefficientOf(along[k].loop->variable) == step)) return false;
    step = step * Polynomial(along[k].loop->extent);
  }
  return !along.empty();
}

}  // namespace

void PlaceAddresses(absl::Span<const KernelText::Along> along, const std::string& number, KernelText* text) {
  const Body& body = text->body();
  for (size_t a = 0; a < body.addresses.size(); ++a) {
    const Address& address = body.addresses[a];
    const std::string index =
        IsFlat(address.index, along) ? number : text->IndexText(address.index, along, /*with_offset=*/false);
    text->Line(address.slot < 0
                   ? absl::StrCat("const long a", a, " = ", index, ";")
                   : absl::StrCat("auto* const a", a, " = ", text->PointerTo(address.slot), " + ", index, ";"));
  }
}

std::string PlaceText(int address, absl::Span<const KernelText::Along> along, KernelText* text) {
  const Address& a = text->body().addresses[address];
  const std::string offset = text->IndexText(a.index, along, /*with_offset=*/true);
  return a.slot >= 0 ? absl::StrCat("a", address, "[", offset, "]") : absl::StrCat("a", address, " + ", offset);
}

std::string PointerText(int address, absl::Span<const KernelText::Along> along, KernelText* text) {
  const std::string offset = text->IndexText(text->body().addresses[address].index, along, /*with_offset=*/true);
  return absl::StrCat("a", address, " + ", offset);
}

}  // namespace torch_lazy::codegen::cuda
