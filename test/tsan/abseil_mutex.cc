// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer what absl::Mutex orders: the system's Abseil is not instrumented. These take the place of
// Abseil's own functions, since a program's symbols are found before those of its libraries.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"

extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);

namespace {

// Conditions that threads wait for are read inside of Abseil, by whoever holds the lock.
struct IgnoreReads {
  IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

template <typename Function>
Function* Original(const char* symbol) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol));
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static auto* const lock = Original<void(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  lock(this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  static auto* const unlock = Original<void(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  __tsan_release(this);
  const IgnoreReads ignore;
  unlock(this);
}

void Mutex::Await(const Condition& condition) {
  static auto* const await = Original<void(Mutex*, const Condition&)>("_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE");
  __tsan_release(this);
  {
    const IgnoreReads ignore;
    await(this, condition);
  }
  __tsan_acquire(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const await = Original<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  __tsan_release(this);
  bool is_true = false;
  {
    const IgnoreReads ignore;
    is_true = await(this, condition, timeout);
  }
  __tsan_acquire(this);
  return is_true;
}

ABSL_NAMESPACE_END
}  // namespace absl
