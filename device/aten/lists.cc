// SPDX-License-Identifier: Apache-2.0
#include "device/aten/lists.h"

#include "absl/container/flat_hash_map.h"

namespace torch_lazy::device {

bool AreIndependent(lazy::Lowering& call, std::initializer_list<int> lists) {
  absl::flat_hash_map<ir::Value, int> item_of;
  for (const int arg : lists) {
    for (int k = 0; arg >= 0 && k < call.ListSize(arg); ++k) {
      const ir::Value value = call.ListTensor(arg, k);
      if (ir::IsComplex(call.b().dtype(value))) return false;
      if (arg == *lists.begin() && !item_of.emplace(value, k).second) return false;
      const auto written = item_of.find(value);
      if (written != item_of.end() && written->second != k) return false;
    }
  }
  return true;
}

}  // namespace torch_lazy::device
