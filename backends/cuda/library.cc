// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/library.h"

#include <dlfcn.h>
#include <link.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/flags.h"

namespace torch_lazy::backends {

absl::StatusOr<void*> OpenLibrary(absl::Span<const std::string> names, const std::string& what) {
  std::vector<std::string> errors;
  for (const std::string& name : names) {
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    errors.push_back(dlerror());
  }
  const std::string path = base::Environment("LD_LIBRARY_PATH");
  return absl::NotFoundError(absl::StrCat(what, " was not found: tried ", absl::StrJoin(names, ", "), " (",
                                          errors.empty() ? "" : errors.back(), "), in LD_LIBRARY_PATH=", path,
                                          " and the system's folders"));
}

void* FindOpenLibrary(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }

std::string FolderOfOpenLibrary(const std::string& file_name) {
  struct Search {
    std::string ending;
    std::string folder;
  } search = {absl::StrCat("/", file_name), ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Search* const wanted = static_cast<Search*>(data);
        const absl::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (!absl::EndsWith(path, wanted->ending)) return 0;
        wanted->folder = std::string(path.substr(0, path.size() - wanted->ending.size()));
        return 1;
      },
      &search);
  return search.folder;
}

absl::StatusOr<void*> FindSymbol(void* library, const char* name) {
  void* const symbol = dlsym(library, name);
  if (symbol == nullptr) return absl::NotFoundError(absl::StrCat("no symbol ", name, ": ", dlerror()));
  return symbol;
}

}  // namespace torch_lazy::backends
