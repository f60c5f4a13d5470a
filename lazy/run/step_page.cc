// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/step_page.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "backends/registry.h"
#include "base/log.h"
#include "ir/print.h"

namespace torch_lazy::lazy {
namespace {

constexpr int kRowHeight = 18;      // pixels between two steps of the flow
constexpr int kFlowWidth = 360;     // of its arcs
constexpr size_t kMostSteps = 400;  // in the flow
constexpr int64_t kWarmUp = 2;      // first runs, which count only until there are more

constexpr char kHead[] = R"(<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>lazy: one step</title><style>
body { font: 14px sans-serif; margin: 2em; }
table { border-collapse: collapse; }
td, th { border-bottom: 1px solid #ddd; padding: 2px 10px; text-align: right; vertical-align: top; }
td.what { text-align: left; font-family: monospace; }
td.bar { text-align: left; min-width: 160px; }
.bar div { background: #4a7ebb; height: 12px; }
pre { background: #f6f6f6; padding: 8px; text-align: left; }
path { fill: none; stroke: #4a7ebb; stroke-opacity: 0.5; }
</style></head><body>
)";

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

std::string Folded(absl::string_view title, absl::string_view text) {
  return absl::StrCat("<details><summary>", Escaped(title), "</summary><pre>", Escaped(text), "</pre></details>\n");
}

// A buffer that the instance writes stands among its buffers once for that, and once more if it reads it too.
std::vector<int32_t> ReadBy(const codegen::Instance& instance) {
  std::vector<int32_t> read = instance.buffers;
  for (const int32_t written : instance.written) read.erase(std::find(read.begin(), read.end(), written));
  return read;
}

}  // namespace

StepPage::StepPage(std::string folder, const ir::Graph& graph, const codegen::Plan& plan,
                   const std::vector<size_t>& size_bytes)
    : folder_(std::move(folder)), graph_(graph), plan_(plan), size_bytes_(size_bytes) {
  for (const codegen::Step& step : plan.steps) rows_.push_back({CallOf(step), DetailsOf(step), BytesOf(step)});
}

std::string StepPage::CallOf(const codegen::Step& step) const {
  if (step.kind == codegen::Step::Kind::kCall) return graph_.node(step.call).attrs.callee;
  if (step.kind == codegen::Step::Kind::kMatmul) return "matmul";
  const std::string& first = plan_.kernels[static_cast<size_t>(step.instances[0].kernel)].name;
  const std::string shape = first.substr(0, first.find('_'));
  return step.instances.size() == 1 ? shape : absl::StrCat(shape, " and ", step.instances.size() - 1, " more");
}

std::string StepPage::DetailsOf(const codegen::Step& step) const {
  if (step.kind == codegen::Step::Kind::kCall) return Folded("call", ir::PrintNode(graph_, step.call));
  if (step.kind == codegen::Step::Kind::kMatmul) {
    return Folded("sizes", absl::StrJoin(step.sizes, ", ", [](std::string* out, const codegen::Monomial& size) {
                    absl::StrAppend(out, codegen::Polynomial(size).ToString());
                  }));
  }
  std::string text;
  std::vector<int32_t> shown;
  for (const codegen::Instance& instance : step.instances) {
    const codegen::Kernel& kernel = plan_.kernels[static_cast<size_t>(instance.kernel)];
    if (std::find(shown.begin(), shown.end(), instance.kernel) != shown.end()) continue;
    shown.push_back(instance.kernel);
    const auto alike = std::count_if(step.instances.begin(), step.instances.end(),
                                     [&](const codegen::Instance& other) { return other.kernel == instance.kernel; });
    absl::StrAppend(
        &text, Folded(absl::StrCat(kernel.name, " (", alike, ")"), absl::StrCat(instance.nodes, "\n", kernel.source)));
  }
  return text;
}

double StepPage::BytesOf(const codegen::Step& step) const {
  double bytes = 0;
  const auto add = [&](int32_t buffer) {
    if (buffer >= 0) bytes += static_cast<double>(size_bytes_[static_cast<size_t>(buffer)]);
  };
  std::for_each(step.operands.begin(), step.operands.end(), add);
  std::for_each(step.results.begin(), step.results.end(), add);
  for (const codegen::Instance& instance : step.instances)
    std::for_each(instance.buffers.begin(), instance.buffers.end(), add);
  return bytes;
}

void StepPage::AddRun(const std::vector<double>& seconds) {
  std::lock_guard<std::mutex> lock(lock_);
  ++num_runs_;
  const double share = num_runs_ <= kWarmUp ? 1.0 : 1.0 / static_cast<double>(num_runs_ - kWarmUp);
  for (size_t s = 0; s < rows_.size(); ++s) {
    Row& row = rows_[s];
    row.mean += share * (seconds[s] - row.mean);
    row.fastest = num_runs_ == 1 ? seconds[s] : std::min(row.fastest, seconds[s]);
  }
  if ((num_runs_ & (num_runs_ - 1)) == 0) Write();
}

std::string StepPage::Table() const {
  double mean = 0, fastest = 0, bytes = 0;
  for (const Row& row : rows_) mean += row.mean, fastest += row.fastest, bytes += row.bytes;
  const double copy_speed = backends::Get().CopySpeed();
  std::string text = absl::StrFormat(
      "<p>%d steps, %d runs: %.3f ms on average, %.3f ms with each step at its fastest; %.1f MB read and written "
      "(buffers "
      "whole). A copy on this machine: %.1f GB/s.</p>\n",
      rows_.size(), num_runs_, mean * 1e3, fastest * 1e3, bytes * 1e-6, copy_speed * 1e-9);
  text +=
      "<table><tr><th></th><th>step</th><th>µs, average</th><th></th><th>fastest</th><th>MB</th><th>GB/s</th><th>of a "
      "copy</th></tr>\n";
  for (size_t s = 0; s < rows_.size(); ++s) {
    const Row& row = rows_[s];
    const double speed = row.bytes / row.mean;
    absl::StrAppend(
        &text,
        absl::StrFormat("<tr id=\"s%d\"><td>%d</td><td class=\"what\">%s%s</td><td>%.1f</td>", s, s, Escaped(row.what),
                        row.details, row.mean * 1e6),
        absl::StrFormat("<td class=\"bar\"><div style=\"width:%.1f%%\"></div></td><td>%.1f</td><td>%.2f</td>",
                        100 * row.mean / mean, row.fastest * 1e6, row.bytes * 1e-6),
        absl::StrFormat("<td>%.1f</td><td>%.0f%%</td></tr>\n", speed * 1e-9,
                        copy_speed > 0 ? 100 * speed / copy_speed : 0));
  }
  return absl::StrCat(text, "</table>\n");
}

// The steps below each other; an arc from the step that writes a buffer to each that reads it.
std::string StepPage::Flow() const {
  const size_t shown = std::min(rows_.size(), kMostSteps);
  std::string arcs;
  std::vector<int> writer(plan_.buffers.size(), -1);
  for (size_t s = 0; s < shown; ++s) {
    const codegen::Step& step = plan_.steps[s];
    const auto read = [&](int32_t buffer) {
      const int from = buffer < 0 ? -1 : writer[static_cast<size_t>(buffer)];
      if (from < 0 || from == static_cast<int>(s)) return;
      const int y0 = (from + 1) * kRowHeight, y1 = static_cast<int>(s + 1) * kRowHeight;
      const int x = kFlowWidth - std::min(kFlowWidth, 10 + (y1 - y0) / 2);
      absl::StrAppend(&arcs, "<path d=\"M", kFlowWidth, " ", y0, " C", x, " ", y0, " ", x, " ", y1, " ", kFlowWidth,
                      " ", y1, "\"><title>", Escaped(plan_.buffers[static_cast<size_t>(buffer)].type.ToString()),
                      "</title></path>\n");
    };
    const auto write = [&](int32_t buffer) {
      if (buffer >= 0) writer[static_cast<size_t>(buffer)] = static_cast<int>(s);
    };
    std::for_each(step.operands.begin(), step.operands.end(), read);
    for (const codegen::Instance& instance : step.instances) {
      for (const int32_t buffer : ReadBy(instance)) read(buffer);
    }
    std::for_each(step.results.begin(), step.results.end(), write);
    for (const codegen::Instance& instance : step.instances)
      std::for_each(instance.written.begin(), instance.written.end(), write);
    absl::StrAppend(&arcs, "<text x=\"", kFlowWidth + 6, "\" y=\"", (s + 1) * kRowHeight + 4, "\"><a href=\"#s", s,
                    "\">", s, " ", Escaped(rows_[s].what), "</a></text>\n");
  }
  return absl::StrCat("<svg width=\"900\" height=\"", (shown + 2) * kRowHeight, "\" font-size=\"12\">\n", arcs,
                      "</svg>\n");
}

void StepPage::Write() const {
  base::WriteDump(folder_, "step.html",
                  absl::StrCat(kHead, "<h1>One step</h1>\n", Table(), "<h2>What flows between the steps</h2>\n", Flow(),
                               "<h2>Graph</h2>\n", Folded("before the passes", ir::Print(graph_)),
                               Folded("plan", plan_.ToString()), "</body></html>\n"));
}

}  // namespace torch_lazy::lazy
