// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/python_line.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace torch_lazy::lazy {
namespace {

using Object = void;  // PyObject, PyFrameObject, PyCodeObject

// Functions of Python's C interface, all of them there since 3.9.
struct PythonFrames {
  int (*PyGILState_Ensure)();
  void (*PyGILState_Release)(int);
  void (*PyErr_Fetch)(Object**, Object**, Object**);
  void (*PyErr_Restore)(Object*, Object*, Object*);
  void (*Py_IncRef)(Object*);
  void (*Py_DecRef)(Object*);
  Object* (*PyEval_GetFrame)();         // borrowed
  Object* (*PyFrame_GetBack)(Object*);  // these three are owned
  Object* (*PyFrame_GetCode)(Object*);
  Object* (*PyObject_GetAttrString)(Object*, const char*);
  int (*PyFrame_GetLineNumber)(Object*);
  const char* (*PyUnicode_AsUTF8)(Object*);
  bool is_complete = true;

  PythonFrames() {
#define FIND(function) Find(&function, #function)
    FIND(PyGILState_Ensure), FIND(PyGILState_Release), FIND(PyErr_Fetch), FIND(PyErr_Restore), FIND(Py_IncRef),
        FIND(Py_DecRef);
    FIND(PyEval_GetFrame), FIND(PyFrame_GetBack), FIND(PyFrame_GetCode), FIND(PyObject_GetAttrString);
    FIND(PyFrame_GetLineNumber), FIND(PyUnicode_AsUTF8);
#undef FIND
  }

 private:
  template <typename Function>
  void Find(Function** function, const char* name) {
    *function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    is_complete = is_complete && *function != nullptr;
  }
};

const PythonFrames& ThePython() {
  static const PythonFrames* const python = new PythonFrames;
  return *python;
}

// Python's lock, and the error that may be on its way, put aside.
class Held {
 public:
  Held() : state_(ThePython().PyGILState_Ensure()) { ThePython().PyErr_Fetch(&error_[0], &error_[1], &error_[2]); }
  ~Held() {
    ThePython().PyErr_Restore(error_[0], error_[1], error_[2]);
    ThePython().PyGILState_Release(state_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  int state_;
  Object* error_[3];
};

struct Drop {
  void operator()(Object* object) const { ThePython().Py_DecRef(object); }
};
using Owned = std::unique_ptr<Object, Drop>;

std::string TextOf(Object* object, const char* attribute) {
  const Owned value(ThePython().PyObject_GetAttrString(object, attribute));
  const char* const text = value == nullptr ? nullptr : ThePython().PyUnicode_AsUTF8(value.get());
  return text == nullptr ? "" : text;
}

struct Others {
  std::mutex lock;
  std::shared_ptr<const std::vector<std::string>> prefixes;  // null: lines are not named
};

Others& TheOthers() {
  static Others* const others = new Others;
  return *others;
}

}  // namespace

void NamePythonLines(std::vector<std::string> others) {
  auto prefixes = others.empty() ? nullptr : std::make_shared<const std::vector<std::string>>(std::move(others));
  std::lock_guard<std::mutex> lock(TheOthers().lock);
  TheOthers().prefixes = std::move(prefixes);
}

std::string PythonLine() {
  std::shared_ptr<const std::vector<std::string>> others;
  {
    std::lock_guard<std::mutex> lock(TheOthers().lock);
    others = TheOthers().prefixes;
  }
  if (others == nullptr || !ThePython().is_complete) return "";
  const PythonFrames& python = ThePython();
  const Held held;
  Owned frame(python.PyEval_GetFrame());
  if (frame != nullptr) python.Py_IncRef(frame.get());
  for (; frame != nullptr; frame.reset(python.PyFrame_GetBack(frame.get()))) {
    const Owned code(python.PyFrame_GetCode(frame.get()));
    const std::string file = TextOf(code.get(), "co_filename");
    const bool is_other = absl::StartsWith(file, "<") ||
                          std::any_of(others->begin(), others->end(),
                                      [&](const std::string& prefix) { return absl::StartsWith(file, prefix); });
    if (!is_other)
      return absl::StrCat(file, ":", python.PyFrame_GetLineNumber(frame.get()), " in ", TextOf(code.get(), "co_name"));
  }
  return "";
}

}  // namespace torch_lazy::lazy
