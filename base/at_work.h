// SPDX-License-Identifier: Apache-2.0
// Threads of ours, and the end of the program.
//
// exit() ends the data of all libraries, in an order that nobody knows, while other threads go on.
// So ours say when they work, and once the program exits none begins:
//
//   while (true) {
//     AwaitOrder();
//     const base::AtWork work;  // does not return once the program exits
//     ...
//   }
//
// The exit waits 0.15 s at most for them. One that is at work by then may be left, where it gives
// way (base/pace.h) or anywhere, since it touches data of ours alone, which are never destroyed.
// What touches a library's must end first. What ends without exit() (_exit, quick_exit, abort, a
// signal) ends no data, and its threads are harmless.
#pragma once

namespace torch_lazy::base {

// Held by a thread of ours while it works. Once the program exits, such a thread sleeps for ever
// instead.
class AtWork {
 public:
  AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork();
};

// Held by any thread, with no lock of ours taken before, while it does what must end before other
// libraries do, and will soon: calls of CUDA's driver.
class MustEnd {
 public:
  MustEnd();
  MustEnd(const MustEnd&) = delete;
  MustEnd& operator=(const MustEnd&) = delete;
  ~MustEnd();
};

// Sleeps for ever if the program exits and this thread is one of ours. Called where it holds no
// lock.
void StopIfExiting();

bool IsExiting();

// Called when the exit begins, before anything is waited for, and maybe again. A few functions, each
// given once.
void CallAtExit(void (*function)());

// Has the exit watched for: to be called by each thread of the program that uses the device, and
// again when new data of other libraries may have appeared, whose end would otherwise come before
// ours. Any number of times.
//
// What is registered with atexit last is done first, so the first 64 calls register again, and then
// the 128th, 256th and so on. The end of the program's first thread comes before all that, where
// that is the thread that exits. (A program whose first thread ends with pthread_exit compiles no
// more.)
void WatchForExit();

}  // namespace torch_lazy::base
