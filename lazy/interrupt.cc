// SPDX-License-Identifier: Apache-2.0
#include "lazy/interrupt.h"

#include <dlfcn.h>
#include <unistd.h>

namespace torch_lazy::lazy {
namespace {

using Object = void;  // PyObject

// Functions of Python's C interface.
struct Python {
  int (*Py_IsInitialized)();
  int (*PyGILState_Ensure)();
  void (*PyGILState_Release)(int);
  int (*PyErr_CheckSignals)();
  void (*PyErr_Fetch)(Object**, Object**, Object**);
  void (*PyErr_Restore)(Object*, Object*, Object*);
  void (*Py_DecRef)(Object*);
  unsigned long (*PyThread_get_thread_ident)();
  int (*PyThreadState_SetAsyncExc)(unsigned long, Object*);
  bool is_complete = true;

  Python() {
#define FIND(function) Find(&function, #function)
    FIND(Py_IsInitialized), FIND(PyGILState_Ensure), FIND(PyGILState_Release), FIND(PyErr_CheckSignals);
    FIND(PyErr_Fetch), FIND(PyErr_Restore), FIND(Py_DecRef), FIND(PyThread_get_thread_ident), FIND(PyThreadState_SetAsyncExc);
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
  static const Python& python = *new Python;
  if (gettid() != getpid() || !python.is_complete || python.Py_IsInitialized() == 0) return false;
  const int state = python.PyGILState_Ensure();
  Object* before[3];
  python.PyErr_Fetch(&before[0], &before[1], &before[2]);
  const bool raised = python.PyErr_CheckSignals() != 0;
  if (raised) {
    Object* error[3];
    python.PyErr_Fetch(&error[0], &error[1], &error[2]);
    python.PyThreadState_SetAsyncExc(python.PyThread_get_thread_ident(), error[0]);
    for (Object* const object : error) {
      if (object != nullptr) python.Py_DecRef(object);
    }
  }
  python.PyErr_Restore(before[0], before[1], before[2]);
  python.PyGILState_Release(state);
  return raised;
}

}  // namespace torch_lazy::lazy
