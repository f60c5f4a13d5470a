// SPDX-License-Identifier: Apache-2.0
#include "ir/fingerprint.h"

#include <bit>
#include <cstring>
#include <string>

#include "ir/attrs.h"

namespace torch_lazy::ir {
namespace {

// Every field has a fixed size or its length in front, so different nodes have different bytes.
void Append(std::string* key, int64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  key->append(bytes, sizeof bytes);
}
void Append(std::string* key, bool value) { Append(key, static_cast<int64_t>(value)); }
void Append(std::string* key, double value) { Append(key, std::bit_cast<int64_t>(value)); }
void Append(std::string* key, Extent extent) {
  Append(key, extent.is_symbol() ? -1 - static_cast<int64_t>(extent.symbol()) : extent.constant());
}
void Append(std::string* key, const std::string& text) {
  Append(key, static_cast<int64_t>(text.size()));
  key->append(text);
}
template <typename T, size_t N>
void Append(std::string* key, const absl::InlinedVector<T, N>& list) {
  Append(key, static_cast<int64_t>(list.size()));
  for (const T& item : list)
    Append(key, static_cast<std::conditional_t<std::is_integral_v<T>, int64_t, T>>(item));
}

}  // namespace

void AppendKey(const Node& node, std::string* key) {
  Append(key, static_cast<int64_t>(node.op) | static_cast<int64_t>(node.type.dtype) << 8);
  Append(key, node.inputs);
  Append(key, node.type.dims);
  const uint16_t used = UsedAttrs(node.op, node.type.dtype);
  VisitAttrs([&](Attr attr, const char*, auto field) {
    if (Uses(used, attr)) Append(key, node.attrs.*field);
  });
}

base::Fingerprint FingerprintOf(const Graph& graph) {
  std::string key;
  for (const Node& node : graph.nodes) AppendKey(node, &key);
  for (const Output& output : graph.outputs) {
    Append(&key, static_cast<int64_t>(output.value));
    Append(&key, static_cast<int64_t>(output.into));
  }
  return base::FingerprintOf(key);
}

}  // namespace torch_lazy::ir
