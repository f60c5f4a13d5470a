// SPDX-License-Identifier: Apache-2.0
#include "ir/print.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/attrs.h"

namespace torch_lazy::ir {
namespace {

bool InHeader(const Node& node) { return node.op == Op::kParam || node.op == Op::kScalar; }

std::vector<std::string> Names(const Graph& graph) {
  std::vector<std::string> names;
  names.reserve(graph.nodes.size());
  int number = 0;
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kParam) {
      names.push_back(absl::StrCat("%p", node.attrs.index));
    } else if (node.op == Op::kScalar) {
      names.push_back(absl::StrCat("$", node.attrs.index));
    } else {
      names.push_back(absl::StrCat("%", number++));
    }
  }
  return names;
}

std::string Field(int64_t value, DType) { return absl::StrCat(value); }
std::string Field(bool value, DType) { return value ? "true" : "false"; }
std::string Field(double value, DType dtype) { return PrintFloat(value, dtype); }
std::string Field(const std::string& value, DType) { return absl::StrCat("\"", absl::CEscape(value), "\""); }
std::string Field(Extent value, DType) { return value.ToString(); }
std::string Field(const Ints& values, DType) { return absl::StrCat("[", absl::StrJoin(values, ", "), "]"); }
std::string Field(const Dims& values, DType) {
  auto append = [](std::string* out, Extent extent) { absl::StrAppend(out, extent.ToString()); };
  return absl::StrCat("[", absl::StrJoin(values, ", ", append), "]");
}

std::string PrintAttrs(const Node& node) {
  std::vector<std::string> fields;
  const uint16_t used = UsedAttrs(node.op, node.type.dtype);
  VisitAttrs([&](Attr attr, const char* name, auto field) {
    if (!Uses(used, attr)) return;
    if (attr == Attr::kInteger && node.type.dtype == DType::kBool) {
      fields.push_back(absl::StrCat(name, "=", Field(node.attrs.i != 0, node.type.dtype)));
    } else {
      fields.push_back(absl::StrCat(name, "=", Field(node.attrs.*field, node.type.dtype)));
    }
  });
  return fields.empty() ? "" : absl::StrCat(" {", absl::StrJoin(fields, ", "), "}");
}

std::string PrintInputs(const Node& node, const std::vector<std::string>& names) {
  auto append = [&](std::string* out, Value input) { absl::StrAppend(out, names[input]); };
  return node.inputs.empty() ? "" : absl::StrCat(" ", absl::StrJoin(node.inputs, ", ", append));
}

std::string PrintLine(const Node& node, absl::string_view name, const std::vector<std::string>& names) {
  if (InHeader(node)) return absl::StrCat(name, ": ", node.type.ToString());
  return absl::StrCat(name, " = ", Info(node.op).text, PrintInputs(node, names), PrintAttrs(node), " : ",
                      node.type.ToString());
}

std::string PrintOutput(const Output& output, const std::vector<std::string>& names) {
  if (output.into < 0) return names[output.value];
  return absl::StrCat(names[output.value], " -> %p", output.into);
}

template <typename Float>
std::string Shortest(Float value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

}  // namespace

std::string PrintFloat(double value, DType dtype) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (std::isnan(value)) {
    if (SameBits(value, std::numeric_limits<double>::quiet_NaN())) return "nan";
    return absl::StrFormat("nan:0x%x", std::bit_cast<uint64_t>(value));
  }
  return dtype == DType::kF64 ? Shortest(value) : Shortest(static_cast<float>(value));
}

std::string ValueName(const Graph& graph, Value v) { return Names(graph)[v]; }

std::vector<std::string> ValueNames(const Graph& graph) { return Names(graph); }

std::string PrintNode(const Graph& graph, Value v) {
  const std::vector<std::string> names = Names(graph);
  return PrintLine(graph.node(v), names[v], names);
}

std::string PrintNodes(const Graph& graph, absl::Span<const Value> values) {
  const std::vector<std::string> names = Names(graph);
  std::string text;
  for (const Value v : values) absl::StrAppend(&text, PrintLine(graph.node(v), names[v], names), "\n");
  return text;
}

std::string Print(const Graph& graph) {
  const std::vector<std::string> names = Names(graph);
  std::vector<std::string> header;
  std::string body;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (InHeader(node)) {
      header.push_back(PrintLine(node, names[i], names));
    } else {
      absl::StrAppend(&body, "  ", PrintLine(node, names[i], names), "\n");
    }
  }
  std::vector<std::string> outputs;
  for (const Output& output : graph.outputs) outputs.push_back(PrintOutput(output, names));
  return absl::StrCat("graph @", graph.name, "(", absl::StrJoin(header, ", "), ") {\n", body, "  return",
                      outputs.empty() ? "" : " ", absl::StrJoin(outputs, ", "), "\n}\n");
}

}  // namespace torch_lazy::ir
