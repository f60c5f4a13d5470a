// SPDX-License-Identifier: Apache-2.0
// Where files of ours lie: those that stay, and those of one compilation.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace torch_lazy::backends {

// Option `cache_dir`, else torch_lazy in $XDG_CACHE_HOME or in .cache of $HOME; what is no absolute
// path is passed over. Empty, with a word about it, if there is none. Fixed when first asked for.
std::string CacheRoot();

// $TMPDIR, /tmp and CacheRoot(), as far as there are such.
std::vector<std::string> TemporaryPlaces();

// The first of these in which nobody else could replace a folder of ours.
absl::StatusOr<std::string> TemporaryPlace();

}  // namespace torch_lazy::backends
