// SPDX-License-Identifier: Apache-2.0
// What lazy/ asks of a machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/left_graph.h"
#include "codegen/plan/plan.h"
#include "codegen/plan/target.h"

namespace torch_lazy::backends {

// What a device's driver answered, with the driver's own number of the error. Such a status keeps
// the number, also where it is passed on.
absl::Status DeviceError(absl::StatusCode code, int number, absl::string_view text);
std::optional<int> NumberOfDeviceError(const absl::Status& status);

// One kernel over bound memory: the run-time face of codegen::Instance.
struct BoundInstance {
  void* function = nullptr;  // from Module::Function
  absl::Span<void* const> buffers;
  absl::Span<const int64_t> extents;
  absl::Span<const double> scalars;
  int64_t iterations = 0;
  int64_t grain = 1;
  double cost_per_iteration = 1;
  int64_t scratch_bytes = 0;    // codegen::ScratchBytes of the instance
  bool follows_launch = false;  // of the first of a launch: what the plan did before was a launch, too
};

// Of a GPU.
struct Multiprocessors {
  int count = 0;
  int threads_of_each = 0;  // that it holds at once
};

// Kernels being compiled, or ready. Thread-safe.
//
// A kernel that is at fault itself (its text does not compile, or cannot be loaded, or its blocks
// do not fit the machine) has the status kInvalidArgument, and costs no other its function. Any
// other error is the machine's.
class Module {
 public:
  virtual ~Module() = default;
  virtual bool ready() const = 0;           // compiled and loaded, or failed
  virtual absl::Status status() const = 0;  // of a ready module: ok if all its kernels are
  virtual void Wait() = 0;
  virtual void* Function(int kernel) const = 0;         // in the order given to Compile; only when ready and ok itself
  virtual absl::Status StatusOf(int kernel) const = 0;  // of a ready module's kernel
};

// Where the arguments of launches lie that were captured, to be replayed.
class LaunchRecord {
 public:
  virtual ~LaunchRecord() = default;
  // Puts numbers in the place of those that the launches had, in their order, before the next
  // replay.
  virtual absl::Status Update(absl::Span<const double> scalars) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Contents are the host's memory, to read and write.
  virtual bool on_host() const { return true; }
  // What kernels' text must be written for.
  virtual codegen::Target target() const { return codegen::Target::kCpu; }
  virtual Multiprocessors multiprocessors() const { return {}; }  // none: no GPU
  // Of several devices, work and memory are the calling thread's current one's. To be called before
  // a device other than the first becomes it; an error says why it cannot be used.
  virtual absl::Status Open(int /*device*/) { return absl::OkStatus(); }
  // Makes the calling thread, one of ours, ready to send work to the current device.
  virtual absl::Status Enter() { return absl::OkStatus(); }
  // Starts compiling the kernels that are not known by name yet (memory, then disk), all in one or
  // two processes. Returns at once; with `wait` the compiler runs at normal priority and the call
  // returns when it is done.
  virtual std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel> kernels, bool wait) = 0;
  // Runs independent instances in one parallel region on the calling thread's team. After an error
  // some may have run.
  virtual absl::Status Launch(absl::Span<const BoundInstance> instances) = 0;
  // The thread's launches from here to EndRecord() are captured by a graph: their arguments go into
  // one memory of so many bytes, the sum of LaunchBytes, which lives as long as what is returned.
  // Null: there are no graphs. After an error nothing has begun.
  virtual absl::StatusOr<std::unique_ptr<LaunchRecord>> BeginRecord(size_t /*size_bytes*/) { return nullptr; }
  virtual void EndRecord() {}
  virtual size_t LaunchBytes(absl::Span<const BoundInstance> /*instances*/) const { return 0; }
  // For a thread of ours, which must have no team: from now on its launches are done by itself and
  // by whoever calls Help(). One that is worth it adds one to `offers` and notifies. One thread
  // only.
  virtual void OfferLaunches(std::atomic<uint32_t>* /*offers*/) {}
  // Takes part in such a launch. False if there is none.
  virtual bool Help() { return false; }
  // Memory that keeps its pages: 64-byte aligned, from a pool. Null only if the system has no more;
  // never for size 0.
  virtual void* Allocate(size_t size_bytes) = 0;
  virtual void Free(void* memory, size_t size_bytes) = 0;
  // The program repeats itself: memory may be put where it is fast. From any thread.
  virtual void Settle() {}
  // A word kept beside the compiled kernels, for this machine's other processes, and found again;
  // empty if there is none.
  virtual void Keep(absl::string_view /*key*/, absl::string_view /*word*/) {}
  virtual std::string Recall(absl::string_view /*key*/) { return ""; }
  // True if the kernels of these names are in memory or on disk. Whether they can be loaded will be
  // seen.
  virtual bool HasKernels(absl::Span<const std::string> /*names*/) { return false; }
  // The program ends. A process goes on for some seconds: it compiles what waits for a compiler, and
  // plans these graphs and compiles their kernels. Once.
  virtual void LeaveBehind(absl::Span<const LeftGraph> /*graphs*/) {}
  // Bytes a second, read and written, of a copy between large buffers that are there; 0: not known.
  // Measured when first asked for.
  virtual double CopySpeed() { return 0; }
  // False: calls of libraries need not be made either.
  virtual bool computes() const { return true; }
};

}  // namespace torch_lazy::backends
