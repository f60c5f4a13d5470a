// SPDX-License-Identifier: Apache-2.0
// Runs passes over graphs in text form: lazy_opt [--run=algebra,cse] FILE; "-" reads the standard
// input.
//
// Without --run, all passes. Prints the graphs; a wrong text or an unknown pass is said on stderr,
// with exit status 1.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "ir/parse.h"
#include "ir/passes/pipeline.h"
#include "ir/print.h"

namespace torch_lazy::ir {
namespace {

struct Arguments {
  std::vector<std::string> passes;
  std::string file;
};

std::string PassNames() {
  return absl::StrJoin(Passes(), ", ", [](std::string* out, const Pass& pass) { absl::StrAppend(out, pass.name); });
}

absl::StatusOr<Arguments> ReadArguments(int argc, char** argv) {
  Arguments arguments;
  for (const Pass& pass : Passes()) arguments.passes.emplace_back(pass.name);
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--run=")) {
      arguments.passes = absl::StrSplit(argument, ',');
    } else {
      arguments.file = std::string(argument);
    }
  }
  if (!arguments.file.empty()) return arguments;
  return absl::InvalidArgumentError(absl::StrCat("usage: lazy_opt [--run=PASS,...] FILE, with passes ", PassNames()));
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream stream(path);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  text << stream.rdbuf();
  return text.str();
}

absl::Status Run(int argc, char** argv) {
  LAZY_ASSIGN_OR_RETURN(const Arguments arguments, ReadArguments(argc, argv));
  LAZY_ASSIGN_OR_RETURN(const std::string text, ReadText(arguments.file));
  LAZY_ASSIGN_OR_RETURN(std::vector<Graph> graphs, ParseAll(text));
  for (Graph& graph : graphs) {
    for (const std::string& name : arguments.passes) {
      const Pass* pass = FindPass(name);
      if (pass == nullptr) return absl::NotFoundError(absl::StrCat("there is no pass ", name, ", only ", PassNames()));
      graph = pass->run(graph);
    }
    std::cout << Print(graph);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace torch_lazy::ir

int main(int argc, char** argv) {
  const absl::Status status = torch_lazy::ir::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "lazy_opt: %s\n", std::string(status.message()).c_str());
  return 1;
}
