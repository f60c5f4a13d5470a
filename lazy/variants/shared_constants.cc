// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/shared_constants.h"

#include <mutex>
#include <utility>

namespace torch_lazy::lazy {

std::shared_ptr<const ConstantContents> FindOrMakeConstants(ConstantsKey key,
                                                            absl::FunctionRef<ConstantContents()> make) {
  using Made = std::pair<ConstantsKey, std::weak_ptr<const ConstantContents>>;
  static std::mutex* const mutex = new std::mutex;
  static auto* const all = new std::vector<Made>;
  const std::lock_guard<std::mutex> lock(*mutex);
  std::erase_if(*all, [](const Made& made) { return made.second.expired(); });
  for (const Made& made : *all) {
    if (!(made.first == key)) continue;
    if (std::shared_ptr<const ConstantContents> contents = made.second.lock()) return contents;
  }
  auto contents = std::make_shared<const ConstantContents>(make());
  all->emplace_back(std::move(key), contents);
  return contents;
}

}  // namespace torch_lazy::lazy
