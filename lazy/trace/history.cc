// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/history.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lazy/trace/divergence.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kMaxSites = 4096;
constexpr size_t kMaxMisses = 256;  // the newest

struct Miss {
  size_t num_calls, num_outputs;
  const char* reason;
  SourceLine cut;
  std::string difference;
  SourceLine diverged;
};

struct History {
  std::mutex lock;
  std::deque<CutSite> sites;
  absl::flat_hash_map<std::pair<const TrieNode*, const char*>, CutSite*> known_sites;
  std::deque<Miss> misses;
};

History& TheHistory() {
  static History* const history = new History;
  return *history;
}

std::string At(const std::string& line) { return line.empty() ? "" : absl::StrCat(" at ", line); }

}  // namespace

const CutSite* NoteCut(const TrieNode* end, const char* reason) {
  History& history = TheHistory();
  {
    std::lock_guard<std::mutex> lock(history.lock);
    const auto site = history.known_sites.find({end, reason});
    if (site != history.known_sites.end()) {
      ++site->second->count;
      return site->second;
    }
    if (history.sites.size() >= kMaxSites) return nullptr;
  }
  SourceLine line = CurrentSourceLine();
  std::lock_guard<std::mutex> lock(history.lock);
  CutSite*& site = history.known_sites[{end, reason}];
  if (site == nullptr) {
    site = &history.sites.emplace_back();
    site->reason = reason;
    site->line = std::move(line);
  }
  ++site->count;
  return site;
}

void ForgetSites() {
  History& history = TheHistory();
  std::lock_guard<std::mutex> lock(history.lock);
  history.known_sites.clear();
}

void NoteMiss(const Trace& trace, size_t num_outputs) {
  Miss miss{trace.num_calls(), num_outputs, "", {}, DifferenceOf(trace), trace.divergence.line};
  if (trace.cut != nullptr) {
    miss.reason = trace.cut->reason;
    miss.cut = trace.cut->line;
  }
  History& history = TheHistory();
  std::lock_guard<std::mutex> lock(history.lock);
  history.misses.push_back(std::move(miss));
  if (history.misses.size() > kMaxMisses) history.misses.pop_front();
}

std::string TextOfHistory() {
  History& history = TheHistory();
  std::lock_guard<std::mutex> lock(history.lock);
  std::vector<SourceLine> lines;
  for (const CutSite& site : history.sites) lines.push_back(site.line);
  for (const Miss& miss : history.misses) {
    lines.push_back(miss.cut);
    lines.push_back(miss.diverged);
  }
  const std::vector<std::string> texts = TextsOf(lines);
  auto text_of = texts.begin();
  std::map<std::pair<std::string, std::string>, int64_t> cuts;  // (reason, line) -> count
  for (const CutSite& site : history.sites) {
    const std::string& line = *text_of++;
    if (site.count > 0) cuts[{site.reason, line}] += site.count;
  }
  std::vector<std::pair<int64_t, std::string>> most_first;
  for (const auto& [cut, count] : cuts) most_first.emplace_back(-count, absl::StrCat(cut.first, At(cut.second)));
  std::sort(most_first.begin(), most_first.end());
  std::string text;
  for (const auto& [count, cut] : most_first) absl::StrAppend(&text, "cut ", -count, " times: ", cut, "\n");
  for (const Miss& miss : history.misses) {
    const std::string cut = At(*text_of++), diverged = At(*text_of++);
    absl::StrAppend(&text, "not known: a trace of ", miss.num_calls, " calls and ", miss.num_outputs,
                    " outputs, cut by ", miss.reason, cut, ": ", miss.difference, diverged, "\n");
  }
  return text;
}

void ForgetHistory() {
  History& history = TheHistory();
  std::lock_guard<std::mutex> lock(history.lock);
  for (CutSite& site : history.sites) site.count = 0;
  history.misses.clear();
}

}  // namespace torch_lazy::lazy
