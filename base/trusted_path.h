// SPDX-License-Identifier: Apache-2.0
// Ways to folders along which nobody else can lead us elsewhere.
//
// Whoever may write into a folder, or rename one above it, could have us run his code, or overwrite
// a file of ours through a link. So each folder on the way, and each link, belongs to us, to root,
// or to whoever owns "/"; and nobody else may write into the folders, but for those like /tmp
// (sticky), in which others cannot touch what is ours.
#pragma once

#include <sys/stat.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace torch_lazy::base {

inline constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

absl::Status ErrorOf(const std::string& path);  // what errno says of it; NotFound if it is missing
absl::StatusOr<struct stat> StatOf(const Descriptor& descriptor, const std::string& path);
// An error unless it belongs to us, root, or the owner of "/".
absl::Status CheckOwner(const struct stat& info, const std::string& path);

// The folder of an absolute path, for looking up what is in it (O_PATH); it and those above it are
// made with mode 0700 if missing. The last name must not be a link. What the folder itself is like
// has not been looked at.
absl::StatusOr<Descriptor> MakeWay(const std::string& path);

// Ok if nobody else could replace a folder of ours that were made in this one: it may be a link,
// and open to all as /tmp is.
absl::Status CheckPlace(const std::string& path);

}  // namespace torch_lazy::base
