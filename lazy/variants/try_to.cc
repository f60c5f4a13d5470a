// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/try_to.h"

#include <new>
#include <string>

#include <c10/util/Exception.h>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/faults.h"
#include "base/log.h"

namespace torch_lazy::lazy {

bool TryTo(const char* done, const char* so, absl::FunctionRef<void()> work) {
  std::string why;
  try {
    LAZY_CHECK(!base::MustFail(), "a fault that was asked for");
    work();
  } catch (const base::CheckError& error) {
    why = error.what();
  } catch (const c10::Error& error) {
    why = error.what_without_backtrace();
  } catch (const std::bad_alloc& error) {
    why = error.what();
  }
  if (!why.empty()) base::WarnOnce(done, absl::StrCat("a trace could not be ", done, ", so ", so, ": ", why));
  return why.empty();
}

}  // namespace torch_lazy::lazy
