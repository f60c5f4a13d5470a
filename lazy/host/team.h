// SPDX-License-Identifier: Apache-2.0
// The calling thread's team of OpenMP.
#pragma once

namespace torch_lazy::lazy {

// Its workers end; the next region of the thread makes others. While two threads of a process have teams, workers sleep
// between regions, and to wake them costs more than most regions bring.
void DropTeam();

}  // namespace torch_lazy::lazy
