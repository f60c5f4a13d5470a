// SPDX-License-Identifier: Apache-2.0
// Work in the background that leaves the processors to the program.
//
// Linux hands a busy processor on at its ticks alone, whatever the priorities. Work beside a program that uses all
// processors would double some of its short steps. So such work sleeps of its own accord, unless some processors are
// idle.
#pragma once

namespace torch_lazy::base {

// The calling thread gives way from now on.
void BecomeUnhurried();

// Called every few dozen microseconds by whatever may run in the background, where it holds no lock. Sleeps if the
// thread is unhurried, no processor is spare, and it has worked for a while since it last slept; then it works a tenth
// of the time. Sleeps for ever if the program exits (base/at_work.h).
void GiveWay();

// While one lives, a thread waits for work in the background, which therefore does not sleep.
class Hurry {
 public:
  Hurry();
  ~Hurry();
  Hurry(const Hurry&) = delete;
  Hurry& operator=(const Hurry&) = delete;
};

}  // namespace torch_lazy::base
