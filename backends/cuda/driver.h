// SPDX-License-Identifier: Apache-2.0
// CUDA's driver, found while the program runs.
//
// Declares the little of cuda.h that we use, so that the library builds where no toolkit is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace torch_lazy::backends::cuda {

using Result = int;  // 0: success
using Device = int;
using Context = struct CUctx_st*;
using Library = struct CUlib_st*;
using Kernel = struct CUkern_st*;
using Function = struct CUfunc_st*;  // of a device; a kernel may stand for that of the current one
using Stream = struct CUstream_st*;
using Event = struct CUevent_st*;
using DevicePointer = unsigned long long;

inline constexpr int kMultiprocessors = 16;          // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
inline constexpr int kThreadsOfMultiprocessor = 39;  // .._MAX_THREADS_PER_MULTIPROCESSOR
inline constexpr int kCapabilityMajor = 75;          // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
inline constexpr int kCapabilityMinor = 76;
inline constexpr int kMostThreadsOfBlock = 0;           // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
inline constexpr unsigned kEventDisableTiming = 2;      // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kBeginsBeforeFormerEnds = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
inline constexpr Result kOutOfMemory = 2;               // CUDA_ERROR_OUT_OF_MEMORY
inline constexpr Result kDeinitialized = 4;             // CUDA_ERROR_DEINITIALIZED
inline constexpr Result kNotReady = 600;                // CUDA_ERROR_NOT_READY

struct LaunchAttribute {  // CUlaunchAttribute
  unsigned id;
  alignas(8) union {
    int number;
    char bytes[64];
  } value;
};

struct LaunchConfig {  // CUlaunchConfig
  unsigned blocks[3], threads[3], shared_bytes;
  Stream stream;
  const LaunchAttribute* attributes;
  unsigned num_attributes;
};

// X(Name, symbol, parameters)
#define TORCH_LAZY_DRIVER_LIST(X)                                                                                    \
  X(Init, "cuInit", (unsigned flags))                                                                                \
  X(GetErrorName, "cuGetErrorName", (Result result, const char** name))                                              \
  X(GetErrorString, "cuGetErrorString", (Result result, const char** text))                                          \
  X(DeviceGet, "cuDeviceGet", (Device * device, int ordinal))                                                        \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (int* value, int attribute, Device device))                          \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (Context * context, Device device))                          \
  X(CtxGetCurrent, "cuCtxGetCurrent", (Context * context))                                                           \
  X(CtxSetCurrent, "cuCtxSetCurrent", (Context context))                                                             \
  X(LibraryLoadData, "cuLibraryLoadData",                                                                            \
    (Library * library, const void* image, int* jit_options, void** jit_values, unsigned num_jit_options,            \
     int* options, void** values, unsigned num_options))                                                             \
  X(LibraryGetKernel, "cuLibraryGetKernel", (Kernel * kernel, Library library, const char* name))                    \
  X(KernelGetFunction, "cuKernelGetFunction", (Function * function, Kernel kernel))                                  \
  X(FuncGetAttribute, "cuFuncGetAttribute", (int* value, int attribute, Function function))                          \
  X(LaunchKernel, "cuLaunchKernelEx",                                                                                \
    (const LaunchConfig* config, Function function, void** parameters, void** extra))                                \
  X(MemHostAlloc, "cuMemHostAlloc", (void** memory, size_t size_bytes, unsigned flags))                              \
  X(MemFreeHost, "cuMemFreeHost", (void* memory))                                                                    \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (DevicePointer to, const void* from, size_t size_bytes, Stream stream)) \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void* to, DevicePointer from, size_t size_bytes, Stream stream))       \
  X(MemAlloc, "cuMemAlloc_v2", (DevicePointer * memory, size_t size_bytes))                                          \
  X(MemFree, "cuMemFree_v2", (DevicePointer memory))                                                                 \
  X(StreamCreate, "cuStreamCreate", (Stream * stream, unsigned flags))                                               \
  X(StreamSynchronize, "cuStreamSynchronize", (Stream stream))                                                       \
  X(EventCreate, "cuEventCreate", (Event * event, unsigned flags))                                                   \
  X(EventRecord, "cuEventRecord", (Event event, Stream stream))                                                      \
  X(EventSynchronize, "cuEventSynchronize", (Event event))                                                           \
  X(EventQuery, "cuEventQuery", (Event event))                                                                       \
  X(EventDestroy, "cuEventDestroy_v2", (Event event))

struct Driver {
#define X(Name, symbol, parameters) Result(*Name) parameters;
  TORCH_LAZY_DRIVER_LIST(X)
#undef X
};

// Found once, initialised, and kept; an error says what is missing.
absl::StatusOr<const Driver*> FindDriver();

// "CUDA error: unspecified launch failure (cuLaunchKernel of sum: CUDA_ERROR_LAUNCH_FAILED)", with
// the driver's number. Memory is exhausted, and what comes after CUDA's end is cancelled.
absl::Status StatusOf(const Driver& driver, Result result, const std::string& what);

// Makes a context the thread's for as long as it lives, unless status() says why not.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, Context context);
  const absl::Status& status() const { return status_; }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext();

 private:
  absl::Status Change(Context context);

  const Driver& driver_;
  Context before_ = nullptr;
  bool changed_ = false;
  const absl::Status status_;
};

}  // namespace torch_lazy::backends::cuda

// Passes on a fault of the driver. The text is built only then.
#define LAZY_RETURN_IF_CUDA_ERROR(driver, call, ...)                                                   \
  do {                                                                                                 \
    const ::torch_lazy::backends::cuda::Result lazy_result = (driver).call;                            \
    if (__builtin_expect(lazy_result != 0, 0))                                                         \
      return ::torch_lazy::backends::cuda::StatusOf(driver, lazy_result, ::absl::StrCat(__VA_ARGS__)); \
  } while (false)
