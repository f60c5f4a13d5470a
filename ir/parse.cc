// SPDX-License-Identifier: Apache-2.0
#include "ir/parse.h"

#include <bit>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "ir/attrs.h"
#include "ir/text_reader.h"
#include "ir/verify.h"

namespace torch_lazy::ir {
namespace {

const absl::flat_hash_map<absl::string_view, Op>& OpsByText() {
  static const auto* ops = new absl::flat_hash_map<absl::string_view, Op>{
#define X(name, text, ...) {text, Op::k##name},
      TORCH_LAZY_OP_LIST(X)
#undef X
  };
  return *ops;
}

template <typename Float>
double ReadDecimal(TextReader& in, absl::string_view word) {
  Float value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) in.Fail(absl::StrCat("bad number '", word, "'"));
  return value;
}

// As PrintFloat writes it.
double ReadFloat(TextReader& in, DType dtype) {
  const absl::string_view word = in.Word(".+-:");
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  uint64_t bits = 0;
  if (word.substr(0, 4) == "nan:" && absl::SimpleHexAtoi(word.substr(4), &bits)) return std::bit_cast<double>(bits);
  return dtype == DType::kF64 ? ReadDecimal<double>(in, word) : ReadDecimal<float>(in, word);
}

void Read(TextReader& in, int64_t* value) { *value = in.Integer(); }
void Read(TextReader& in, std::string* value) { *value = in.Quoted(); }
void Read(TextReader& in, bool* value) {
  *value = in.Try("true");
  if (!*value) in.Expect("false");
}
void Read(TextReader& in, Extent* extent) {
  const bool is_symbol = in.Try("s");
  const int64_t number = in.Integer();
  if (number < 0) in.Fail("an extent cannot be negative");
  if (in.ok()) *extent = is_symbol ? Extent::Symbol(static_cast<int32_t>(number)) : Extent::Constant(number);
}
template <typename List>
void ReadList(TextReader& in, List* list) {
  in.Expect("[");
  if (in.Try("]")) return;
  do {
    Read(in, &list->emplace_back());
  } while (in.Try(","));
  in.Expect("]");
}
void Read(TextReader& in, Ints* values) { ReadList(in, values); }
void Read(TextReader& in, Dims* values) { ReadList(in, values); }
void Read(TextReader& in, Type* type) {
  const absl::string_view word = in.Word();
  if (in.ok() && !ParseDType(word, &type->dtype)) in.Fail(absl::StrCat("there is no dtype '", word, "'"));
  if (in.Peek() == '[') Read(in, &type->dims);  // `f64` alone is a number
}

class GraphParser {
 public:
  explicit GraphParser(TextReader& in) : in_(in) {}

  Graph Run() {
    in_.Expect("graph");
    in_.Expect("@");
    graph_.name = std::string(in_.Word());
    ReadHeader();
    in_.Expect("{");
    while (in_.ok() && !in_.Try("return")) ReadNode();
    if (in_.Peek() != '}') ReadOutputs();
    in_.Expect("}");
    return std::move(graph_);
  }

 private:
  void ReadHeader() {
    in_.Expect("(");
    if (in_.Try(")")) return;
    int64_t params = 0, scalars = 0;
    do {
      const absl::string_view name = in_.Name();
      if (!in_.ok()) return;
      Node node;
      node.op = name[0] == '$' ? Op::kScalar : Op::kParam;
      node.attrs.index = node.op == Op::kScalar ? scalars++ : params++;
      in_.Expect(":");
      Read(in_, &node.type);
      Append(name, std::move(node));
    } while (in_.Try(","));
    in_.Expect(")");
  }

  void ReadNode() {
    const absl::string_view name = in_.Name();
    in_.Expect("=");
    const absl::string_view text = in_.Word();
    if (!in_.ok()) return;
    const auto op = OpsByText().find(text);
    if (op == OpsByText().end()) return in_.Fail(absl::StrCat("there is no op '", text, "'"));
    Node node;
    node.op = op->second;
    if (in_.Peek() == '%' || in_.Peek() == '$') {
      do {
        node.inputs.push_back(Find(in_.Name()));
      } while (in_.Try(","));
    }
    TextReader attrs = in_;  // the type stands behind the attributes, but a constant's value is read by it
    SkipAttrs();
    in_.Expect(":");
    Read(in_, &node.type);
    if (in_.ok()) ReadAttrs(attrs, node);
    Append(name, std::move(node));
  }

  void SkipAttrs() {
    if (!in_.Try("{")) return;
    while (in_.ok() && !in_.Try("}")) {
      if (in_.Peek() == '"') {
        in_.Quoted();
      } else if (!in_.Try("[") && !in_.Try("]") && !in_.Try(",") && !in_.Try("=")) {
        in_.Word("_.+-:");
      }
    }
  }

  // An op's attributes are all written, in their order.
  void ReadAttrs(TextReader attrs, Node& node) {
    const uint16_t used = UsedAttrs(node.op, node.type.dtype);
    const char* separator = "{";
    VisitAttrs([&](Attr attr, const char* name, auto field) {
      if (!Uses(used, attr)) return;
      attrs.Expect(std::exchange(separator, ","));
      attrs.Expect(name);
      attrs.Expect("=");
      ReadField(attrs, node, &(node.attrs.*field));
    });
    if (used != 0) attrs.Expect("}");
    if (used == 0 && attrs.Peek() == '{') attrs.Fail(absl::StrCat(Info(node.op).text, " has no attributes"));
    if (!attrs.ok()) in_ = attrs;
  }

  template <typename Field>
  static void ReadField(TextReader& attrs, const Node&, Field* field) {
    Read(attrs, field);
  }
  static void ReadField(TextReader& attrs, const Node& node, double* field) {
    *field = ReadFloat(attrs, node.type.dtype);
  }
  static void ReadField(TextReader& attrs, const Node& node, int64_t* field) {
    bool is_true = false;
    if (node.op != Op::kConst || node.type.dtype != DType::kBool) return Read(attrs, field);
    Read(attrs, &is_true);
    *field = is_true;
  }

  void ReadOutputs() {
    do {
      Output output;
      output.value = Find(in_.Name());
      if (in_.Try("->")) {
        const Value into = Find(in_.Name());
        if (in_.ok() && graph_.node(into).op != Op::kParam) in_.Fail("only a parameter's buffer can be taken");
        if (in_.ok()) output.into = static_cast<int32_t>(graph_.node(into).attrs.index);
      }
      graph_.outputs.push_back(output);
    } while (in_.Try(","));
  }

  void Append(absl::string_view name, Node node) {
    if (!in_.ok()) return;
    if (!values_.emplace(name, static_cast<Value>(graph_.nodes.size())).second) {
      return in_.Fail(absl::StrCat(name, " is defined twice"));
    }
    graph_.nodes.push_back(std::move(node));
    const absl::Status status = VerifyNode(graph_, static_cast<Value>(graph_.nodes.size()) - 1);
    if (!status.ok()) in_.Fail(status.message());
  }

  Value Find(absl::string_view name) {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    in_.Fail(absl::StrCat(name, " is not defined"));
    return 0;
  }

  TextReader& in_;
  Graph graph_;
  absl::flat_hash_map<absl::string_view, Value> values_;
};

}  // namespace

absl::StatusOr<std::vector<Graph>> ParseAll(absl::string_view text) {
  TextReader in(text);
  std::vector<Graph> graphs;
  while (in.ok() && !in.AtEnd()) graphs.push_back(GraphParser(in).Run());
  LAZY_RETURN_IF_ERROR(in.status());
  for (const Graph& graph : graphs) LAZY_RETURN_IF_ERROR(Verify(graph));
  return graphs;
}

absl::StatusOr<Graph> Parse(absl::string_view text) {
  LAZY_ASSIGN_OR_RETURN(std::vector<Graph> graphs, ParseAll(text));
  if (graphs.size() == 1) return std::move(graphs[0]);
  return absl::InvalidArgumentError(absl::StrCat("parse: expected one graph, found ", graphs.size()));
}

}  // namespace torch_lazy::ir
