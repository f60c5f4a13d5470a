// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/team.h"

#include <dlfcn.h>

namespace torch_lazy::lazy {
namespace {

// Of OpenMP 5.0, whichever runtime PyTorch brings along.
using Pause = int (*)(int kind, int device);
using InitialDevice = int (*)();

constexpr int kSoft = 1;  // omp_pause_soft

}  // namespace

void DropTeam() {
  static const auto pause = reinterpret_cast<Pause>(dlsym(RTLD_DEFAULT, "omp_pause_resource"));
  static const auto host = reinterpret_cast<InitialDevice>(dlsym(RTLD_DEFAULT, "omp_get_initial_device"));
  if (pause != nullptr && host != nullptr) pause(kSoft, host());
}

}  // namespace torch_lazy::lazy
