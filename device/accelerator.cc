// SPDX-License-Identifier: Apache-2.0
// Eager CUDA beside us.
//
// Note [One accelerator]
// PyTorch takes one device type for *the* accelerator, and a PrivateUse1 device for it as soon as one has a name. The
// autograd engine then finds no streams for CUDA's nodes, and every backward pass over CUDA tensors in the process dies of
// an internal assertion ("opt_ready_stream && opt_parent_stream"). No hook is asked, so nothing that a device may implement
// changes it. What is asked is two functions, across libraries; so in libtorch_cpu we answer for them, by its table of
// imported addresses: from CUDA's first use on, CUDA is the accelerator, as it is without us, and our device is none, which
// to the engine means one without streams to wait for: all of ours are one queue.
//
// Without CUDA nothing changes. Where a version of PyTorch asks in another way, its table has no such entries and nothing
// changes either.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>

namespace torch_lazy::device {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kImports[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#elif defined(__aarch64__)
constexpr uint32_t kImports[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#endif

// Asked often, and without a call to the driver, which would spoil a later fork.
bool CudaIsInUse() {
  static std::atomic<bool> in_use{false};
  if (in_use.load(std::memory_order_relaxed)) return true;
  if (!at::detail::getCUDAHooks().isBuilt()) return false;
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::kCUDA));
  in_use = allocator != nullptr && allocator->initialized();
  return in_use;
}

bool IsPrivateUse1Registered() { return !CudaIsInUse() && c10::is_privateuse1_backend_registered(); }

bool IsAccelerator(c10::DeviceType type) {
  return at::accelerator::isAccelerator(type) && !(type == c10::kPrivateUse1 && CudaIsInUse());
}

// A loaded library's tables, as the dynamic linker left them.
struct Library {
  ElfW(Addr) base = 0;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* imports = nullptr;
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

// Puts `replacement` in the place of `function` where the library calls it.
void Replace(const Library& library, void* function, void* replacement) {
  Dl_info info;
  if (dladdr(function, &info) == 0 || info.dli_sname == nullptr) return;
  for (size_t i = 0; i < library.num_imports; ++i) {
    const ElfW(Rela)& import = library.imports[i];
    if (std::find(std::begin(kImports), std::end(kImports), ELF64_R_TYPE(import.r_info)) == std::end(kImports)) continue;
    if (std::strcmp(library.names + library.symbols[ELF64_R_SYM(import.r_info)].st_name, info.dli_sname) != 0) continue;
    auto* const slot = reinterpret_cast<void**>(library.base + import.r_offset);
    const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    void* const page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page_bytes - 1));
    if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return;
    __atomic_store_n(slot, replacement, __ATOMIC_RELEASE);
    return;
  }
}

[[maybe_unused]] const bool done = [] {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&at::accelerator::getAccelerator), &info) == 0) return false;
  Library library{.base = reinterpret_cast<ElfW(Addr)>(info.dli_fbase)};
  dl_iterate_phdr(&FillTables, &library);
  if (library.imports == nullptr || library.symbols == nullptr || library.names == nullptr) return false;
  Replace(library, reinterpret_cast<void*>(&c10::is_privateuse1_backend_registered),
          reinterpret_cast<void*>(&IsPrivateUse1Registered));
  Replace(library, reinterpret_cast<void*>(&at::accelerator::isAccelerator), reinterpret_cast<void*>(&IsAccelerator));
  return true;
}();

}  // namespace
}  // namespace torch_lazy::device
