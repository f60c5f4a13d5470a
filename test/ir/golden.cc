// SPDX-License-Identifier: Apache-2.0
#include "test/ir/golden.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "gtest/gtest.h"
#include "ir/parse.h"
#include "ir/print.h"

namespace torch_lazy::ir {
namespace {

constexpr absl::string_view kRun = "// RUN:", kDirective = "// ---- ";

struct GoldenCase {
  std::string input;      // comments and a graph, as written
  std::string directive;  // "expect", "unchanged", "error: ..."
  std::string expected;   // for "expect", as written
  std::string name;       // of the graph
};
struct GoldenFile {
  std::string path;
  std::string run;
  std::vector<GoldenCase> cases;
};

std::string GraphName(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "graph @")) continue;
    return std::string(line.substr(0, line.find('(')));
  }
  return "";
}

// An input reaches up to its directive; an expected text up to the first line that is just "}" or,
// without one, blank.
GoldenFile ReadGolden(const std::string& path) {
  GoldenFile file{path, "", {}};
  std::ifstream stream(path);
  std::string line, input;
  GoldenCase* open = nullptr;
  while (std::getline(stream, line)) {
    if (open != nullptr) {
      absl::StrAppend(&open->expected, line, "\n");
      if (line == "}") open = nullptr;
    } else if (absl::StartsWith(line, kRun)) {
      file.run = std::string(absl::StripAsciiWhitespace(absl::StripPrefix(line, kRun)));
    } else if (absl::StartsWith(line, kDirective)) {
      file.cases.push_back({input, std::string(absl::StripPrefix(line, kDirective)), "", GraphName(input)});
      if (file.cases.back().directive == "expect") open = &file.cases.back();
      input.clear();
    } else {
      absl::StrAppend(&input, line, "\n");
    }
  }
  LAZY_CHECK(!file.run.empty() && !file.cases.empty(), path, " has no RUN line or no case");
  LAZY_CHECK(absl::StripAsciiWhitespace(input).empty(), path, " ends without a directive");
  return file;
}

void WriteGolden(const GoldenFile& file) {
  std::ofstream stream(file.path);
  stream << kRun << " " << file.run << "\n";
  for (const GoldenCase& c : file.cases) stream << c.input << kDirective << c.directive << "\n" << c.expected;
}

std::string Canonical(const std::string& text) {
  const absl::StatusOr<Graph> graph = Parse(text);
  return graph.ok() ? Print(*graph) : text;
}

const GoldenCase& CaseNamed(const GoldenFile& file, absl::string_view name) {
  const auto found = std::find_if(file.cases.begin(), file.cases.end(), [&](const auto& c) { return c.name == name; });
  LAZY_CHECK(found != file.cases.end(), file.path, " has no graph @", name);
  return *found;
}

class GoldenTest : public testing::Test {
 public:
  GoldenTest(std::shared_ptr<GoldenFile> file, size_t index, GoldenRun run)
      : file_(std::move(file)), index_(index), run_(std::move(run)) {}

  void TestBody() override {
    GoldenCase& c = file_->cases[index_];
    absl::string_view rest = c.directive;
    if (absl::ConsumePrefix(&rest, "error: ")) return ExpectError(c, rest);
    const absl::StatusOr<std::string> actual = Outcome(c);
    ASSERT_TRUE(actual.ok()) << actual.status();
    if (absl::ConsumePrefix(&rest, "same-as @")) return ExpectSame(*actual, CaseNamed(*file_, rest), c.name);
    const std::string expected = c.directive == "unchanged" ? Canonical(c.input) : Canonical(c.expected);
    if (*actual != expected && std::getenv("LAZY_UPDATE_GOLDENS") != nullptr) return Update(c, *actual);
    EXPECT_EQ(*actual, expected) << file_->path << ": RUN: " << file_->run;
  }

 private:
  absl::StatusOr<std::string> Outcome(const GoldenCase& c) {
    const absl::StatusOr<Graph> graph = Parse(c.input);
    if (!graph.ok()) return graph.status();
    EXPECT_EQ(Print(*Parse(Print(*graph))), Print(*graph));
    return run_(file_->run, *graph);
  }

  void ExpectError(const GoldenCase& c, absl::string_view message) {
    const absl::StatusOr<std::string> actual = Outcome(c);
    ASSERT_FALSE(actual.ok()) << *actual;
    EXPECT_EQ(std::string(actual.status().message()), std::string(message));
  }

  void ExpectSame(std::string actual, const GoldenCase& other, const std::string& name) {
    const absl::StatusOr<std::string> other_actual = Outcome(other);
    ASSERT_TRUE(other_actual.ok()) << other_actual.status();
    const size_t at = actual.find("@" + name);
    if (at != std::string::npos) actual.replace(at, name.size() + 1, "@" + other.name);
    EXPECT_EQ(actual, *other_actual);
  }

  void Update(GoldenCase& c, const std::string& actual) {
    c.directive = "expect";
    c.expected = actual;
    WriteGolden(*file_);
  }

  std::shared_ptr<GoldenFile> file_;
  size_t index_;
  GoldenRun run_;
};

}  // namespace

void RegisterGoldens(const std::string& folder, const GoldenRun& run) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".lir") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  LAZY_CHECK(!paths.empty(), "no golden files in ", folder);
  for (const std::string& path : paths) {
    const auto file = std::make_shared<GoldenFile>(ReadGolden(path));
    const std::string suite = std::filesystem::relative(path, folder).replace_extension().string();
    for (size_t i = 0; i < file->cases.size(); ++i) {
      testing::RegisterTest(suite.c_str(), file->cases[i].name.c_str(), nullptr, nullptr, path.c_str(), 1,
                            [=]() -> testing::Test* { return new GoldenTest(file, i, run); });
    }
  }
}

}  // namespace torch_lazy::ir
