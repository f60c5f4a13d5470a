// SPDX-License-Identifier: Apache-2.0
#include "bench/device.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace bench {
namespace {

bool is_lazy = false, is_cuda = false;

// Boxed, so that the operators' C++ types do not matter.
std::vector<c10::IValue> Call(const char* name) {
  std::vector<c10::IValue> stack;
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(stack);
  return stack;
}

}  // namespace

c10::Device Open(const std::string& name) {
  if (name == "cpu") return c10::Device(name);
  is_lazy = name == "lazy";
  is_cuda = name == "cuda";
  const char* library = is_lazy ? "libtorch_lazy.so" : is_cuda ? "libtorch_cuda.so" : "libnull_device.so";
  if (dlopen(library, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  return c10::Device(is_lazy ? "lazy" : is_cuda ? "cuda" : "privateuseone");
}

void Sync() {
  if (is_lazy || is_cuda) c10::impl::getDeviceGuardImpl(is_lazy ? c10::kPrivateUse1 : c10::kCUDA)->synchronizeDevice(0);
}

int64_t Metric(const std::string& name) {
  if (!is_lazy) return 0;
  const std::string json = Call("torch_lazy::metrics").at(0).toStringRef();
  return std::stoll(json.substr(json.find(':', json.find('"' + name + '"')) + 1));
}

int64_t NumCalls() { return Metric("calls_total"); }

}  // namespace bench
