// SPDX-License-Identifier: Apache-2.0
#include "ir/fingerprint.h"

#include <bit>
#include <string>

#include "ir/attrs.h"

namespace torch_lazy::ir {
namespace {

// What tells one graph from another, as bytes. Every field has a fixed size or its length in front, so different nodes
// have different ones.
class Key {
 public:
  Key(const Graph& graph, bool has_symbols) : has_symbols_(has_symbols) {
    constexpr size_t kBytesPerNode = 96;
    bytes_.reserve(graph.nodes.size() * kBytesPerNode);
    for (const Node& node : graph.nodes) AppendNode(node);
    for (const Output& output : graph.outputs) {
      Append(static_cast<int64_t>(output.value));
      Append(static_cast<int64_t>(output.into));
    }
  }
  base::Fingerprint Fingerprint() const { return base::FingerprintOf(bytes_); }

 private:
  void AppendNode(const Node& node) {
    Append(static_cast<int64_t>(node.op) | static_cast<int64_t>(node.type.dtype) << 8);
    Append(node.inputs);
    Append(node.type.dims);
    const uint16_t used = UsedAttrs(node.op, node.type.dtype);
    VisitAttrs([&](Attr attr, const char*, auto field) {
      if (Uses(used, attr)) Append(node.attrs.*field);
    });
  }
  void Append(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void Append(bool value) { Append(static_cast<int64_t>(value)); }
  void Append(double value) { Append(std::bit_cast<int64_t>(value)); }
  void Append(Extent extent) {
    Append(extent.is_constant() ? extent.constant() : has_symbols_ ? -1 - static_cast<int64_t>(extent.symbol()) : -1);
  }
  void Append(const std::string& text) {
    Append(static_cast<int64_t>(text.size()));
    bytes_.append(text);
  }
  template <typename T, size_t N>
  void Append(const absl::InlinedVector<T, N>& list) {
    Append(static_cast<int64_t>(list.size()));
    for (const T& item : list) Append(static_cast<std::conditional_t<std::is_integral_v<T>, int64_t, T>>(item));
  }

  const bool has_symbols_;
  std::string bytes_;
};

}  // namespace

base::Fingerprint FingerprintOf(const Graph& graph) { return Key(graph, /*has_symbols=*/true).Fingerprint(); }
base::Fingerprint SkeletonOf(const Graph& graph) { return Key(graph, /*has_symbols=*/false).Fingerprint(); }

}  // namespace torch_lazy::ir
