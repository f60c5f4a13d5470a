// SPDX-License-Identifier: Apache-2.0
#include "device/imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace torch_lazy::device {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kImports[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#elif defined(__aarch64__)
constexpr uint32_t kImports[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#endif

// A loaded library's tables, as the dynamic linker left them.
struct Library {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * imports = nullptr;
  size_t num_imports = 0;
};

int FillTables(dl_phdr_info* info, size_t, void* result) {
  auto* library = static_cast<Library*>(result);
  if (info->dlpi_addr != library->base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(library->base + info->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_SYMTAB) library->symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_STRTAB) library->names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_JMPREL) library->imports = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_PLTRELSZ) library->num_imports = entry->d_un.d_val / sizeof(ElfW(Rela));
    }
  }
  return 1;
}

}  // namespace

bool ReplaceImport(void* address, void* function, void* replacement) {
  Dl_info of_library, of_function;
  if (dladdr(address, &of_library) == 0 || dladdr(function, &of_function) == 0 || of_function.dli_sname == nullptr)
    return false;
  Library library{.base = reinterpret_cast<ElfW(Addr)>(of_library.dli_fbase)};
  dl_iterate_phdr(&FillTables, &library);
  if (library.imports == nullptr || library.symbols == nullptr || library.names == nullptr) return false;
  for (size_t i = 0; i < library.num_imports; ++i) {
    const ElfW(Rela)& import = library.imports[i];
    if (std::find(std::begin(kImports), std::end(kImports), ELF64_R_TYPE(import.r_info)) == std::end(kImports))
      continue;
    if (std::strcmp(library.names + library.symbols[ELF64_R_SYM(import.r_info)].st_name, of_function.dli_sname) != 0)
      continue;
    auto* const slot = reinterpret_cast<void**>(library.base + import.r_offset);
    const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    void* const page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page_bytes - 1));
    if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
    __atomic_store_n(slot, replacement, __ATOMIC_RELEASE);
    return true;
  }
  return false;
}

}  // namespace torch_lazy::device
