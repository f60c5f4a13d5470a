// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/interrupt.h"

#include <dlfcn.h>
#include <unistd.h>

namespace torch_lazy::lazy {
namespace {

// Functions of Python's C interface.
struct PythonSignals {
  int (*Py_IsInitialized)();
  int (*PyGILState_Ensure)();
  void (*PyGILState_Release)(int);
  int (*PyOS_InterruptOccurred)();
  void (*PyErr_SetInterrupt)();
  bool is_complete = true;

  PythonSignals() {
#define FIND(function) Find(&function, #function)
    FIND(Py_IsInitialized), FIND(PyGILState_Ensure), FIND(PyGILState_Release), FIND(PyOS_InterruptOccurred),
        FIND(PyErr_SetInterrupt);
#undef FIND
  }

 private:
  template <typename Function>
  void Find(Function** function, const char* name) {
    *function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    is_complete = is_complete && *function != nullptr;
  }
};

}  // namespace

bool IsInterrupted() {
  static const PythonSignals& python = *new PythonSignals;
  if (gettid() != getpid() || !python.is_complete || python.Py_IsInitialized() == 0) return false;
  const int state = python.PyGILState_Ensure();
  const bool has_come = python.PyOS_InterruptOccurred() != 0;
  if (has_come) python.PyErr_SetInterrupt();  // the question has taken it
  python.PyGILState_Release(state);
  return has_come;
}

}  // namespace torch_lazy::lazy
