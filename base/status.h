// SPDX-License-Identifier: Apache-2.0
// Passing on an absl::Status that is not OK.
//
//   LAZY_RETURN_IF_ERROR(Verify(graph));
//   LAZY_ASSIGN_OR_RETURN(Plan plan, Compile(graph, options));
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define LAZY_RETURN_IF_ERROR(expression)       \
  do {                                         \
    ::absl::Status lazy_status = (expression); \
    if (!lazy_status.ok()) return lazy_status; \
  } while (false)

#define LAZY_ASSIGN_OR_RETURN(declaration, expression) \
  LAZY_ASSIGN_OR_RETURN_AT(LAZY_CONCAT(lazy_statusor_, __LINE__), declaration, expression)
#define LAZY_ASSIGN_OR_RETURN_AT(statusor, declaration, expression) \
  auto statusor = (expression);                                     \
  if (!statusor.ok()) return std::move(statusor).status();          \
  declaration = *std::move(statusor)
#define LAZY_CONCAT(a, b) LAZY_CONCAT_EXPANDED(a, b)
#define LAZY_CONCAT_EXPANDED(a, b) a##b
