// SPDX-License-Identifier: Apache-2.0
// Runs passes and stages of the compiler over graphs in text form: lazy_opt [--run=NAME,...] FILE; "-" reads the
// standard input.
//
//     lazy_opt --run=algebra,merge_matmuls,emit=cuda graph.lir
//
// What may stand after --run= is said in codegen/stages.h. Without it, all passes run. A wrong text or an unknown name
// is said on stderr, with exit status 1.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "codegen/stages.h"
#include "ir/parse.h"

namespace torch_lazy {
namespace {

struct Arguments {
  std::string run = "passes";
  std::string file;
};

absl::StatusOr<Arguments> ReadArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    const bool is_run = absl::ConsumePrefix(&argument, "--run=");
    (is_run ? arguments.run : arguments.file) = std::string(argument);
  }
  if (!arguments.file.empty()) return arguments;
  return absl::InvalidArgumentError(
      absl::StrCat("usage: lazy_opt [--run=NAME,...] FILE, with names ", codegen::StageNames()));
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
  LAZY_ASSIGN_OR_RETURN(const std::vector<ir::Graph> graphs, ir::ParseAll(text));
  for (const ir::Graph& graph : graphs) {
    const absl::StatusOr<std::string> printed = codegen::RunStages(arguments.run, graph);
    if (absl::IsNotFound(printed.status()))
      return absl::NotFoundError(absl::StrCat(printed.status().message(), ", only ", codegen::StageNames()));
    LAZY_RETURN_IF_ERROR(printed.status());
    std::cout << *printed;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace torch_lazy

int main(int argc, char** argv) {
  const absl::Status status = torch_lazy::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "lazy_opt: %s\n", std::string(status.message()).c_str());
  return 1;
}
