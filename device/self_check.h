// SPDX-License-Identifier: Apache-2.0
// Whether this PyTorch is one that the library can serve.
#pragma once

#include <string>

namespace torch_lazy::device {

// One sentence that names the PyTorch that we were compiled for and this one, says what is wrong, and the way out.
std::string SaySoOfTorch(const char* what);

// Why the device cannot be used with this PyTorch, in such a sentence; empty if it can. Looked into by the first call.
const std::string& WhyUnfit();

}  // namespace torch_lazy::device
