// SPDX-License-Identifier: Apache-2.0
#include "backends/compile/order.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "backends/blocks/block_kernel.h"

namespace torch_lazy::backends {
namespace {

// A text is a list of words, each after its length: "3 abc5 defgh".
void Append(std::string* text, std::string_view word) {
  absl::StrAppend(text, word.size(), " ", absl::string_view(word.data(), word.size()));
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // Empty where the text is damaged, as ok() says.
  std::string Word() {
    const size_t space = rest_.find(' ');
    size_t size = 0;
    ok_ = ok_ && space != std::string_view::npos && absl::SimpleAtoi(absl::string_view(rest_.data(), space), &size) &&
          size <= rest_.size() - space - 1;
    if (!ok_) return "";
    std::string word(rest_.substr(space + 1, size));
    rest_.remove_prefix(space + 1 + size);
    return word;
  }
  int64_t Number() {
    int64_t number = 0;
    ok_ = absl::SimpleAtoi(Word(), &number) && ok_;
    return number;
  }
  bool ok() const { return ok_; }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

void AppendNumber(std::string* text, int64_t number) { Append(text, absl::StrCat(number)); }

void AppendLeft(std::string* text, const Order& order) {
  AppendNumber(text, order.is_left ? 1 : 0);
  AppendNumber(text, static_cast<int64_t>(order.graphs.size()));
  for (const LeftGraph& graph : order.graphs) {
    Append(text, graph.text);
    Append(text, graph.note);
    AppendNumber(text, static_cast<int64_t>(graph.numbers.size()));
    for (const int64_t number : graph.numbers) AppendNumber(text, number);
  }
  AppendNumber(text, static_cast<int64_t>(order.others.size()));
  for (const std::string& name : order.others) Append(text, name);
  Append(text, order.disabled);
}

void ReadLeft(Reader* reader, Order* order) {
  order->is_left = reader->Number() != 0;
  for (int64_t graphs = reader->Number(); graphs > 0 && reader->ok(); --graphs) {
    LeftGraph& graph = order->graphs.emplace_back();
    graph.text = reader->Word();
    graph.note = reader->Word();
    for (int64_t numbers = reader->Number(); numbers > 0 && reader->ok(); --numbers)
      graph.numbers.push_back(reader->Number());
  }
  for (int64_t names = reader->Number(); names > 0 && reader->ok(); --names) order->others.push_back(reader->Word());
  order->disabled = reader->Word();
}

}  // namespace

std::string SourceOf(Order::Language language, absl::Span<const codegen::Kernel> kernels) {
  std::string source;
  for (const codegen::Kernel& kernel : kernels) {
    if (language == Order::Language::kCuda) {
      absl::StrAppend(&source, InNamespace(kernel));
    } else {
      absl::StrAppend(&source, kernel.source, "\n");
    }
  }
  return source;
}

std::string TextOf(const Order& order) {
  std::string text;
  AppendNumber(&text, static_cast<int64_t>(order.language));
  AppendNumber(&text, static_cast<int64_t>(order.command.size()));
  for (const std::string& word : order.command) Append(&text, word);
  for (const std::string& word : {order.cache_root, order.cache_key, order.lock_path}) Append(&text, word);
  AppendNumber(&text, order.process);
  AppendLeft(&text, order);
  for (const codegen::Kernel& kernel : order.kernels) {
    Append(&text, kernel.name);
    Append(&text, kernel.source);
  }
  return text;
}

absl::StatusOr<Order> OrderFrom(std::string_view text) {
  Reader reader(text);
  Order order;
  order.language = reader.Number() == 0 ? Order::Language::kCpp : Order::Language::kCuda;
  for (int64_t words = reader.Number(); words > 0 && reader.ok(); --words) order.command.push_back(reader.Word());
  for (std::string* word : {&order.cache_root, &order.cache_key, &order.lock_path}) *word = reader.Word();
  order.process = static_cast<pid_t>(reader.Number());
  ReadLeft(&reader, &order);
  while (reader.ok() && !reader.done()) {
    codegen::Kernel& kernel = order.kernels.emplace_back();
    kernel.name = reader.Word();
    kernel.source = reader.Word();
  }
  if (!reader.ok() || order.command.empty()) return absl::InvalidArgumentError("no order to compile");
  return order;
}

std::string TextOf(const Compiled& compiled) {
  std::string text;
  const absl::Status status = compiled.code.status();
  Append(&text, absl::StrCat(static_cast<int>(status.code())));
  Append(&text, compiled.code.ok() ? *compiled.code : std::string(status.message()));
  Append(&text, std::string(compiled.kept.message()));
  return text;
}

Compiled CompiledFrom(std::string_view text) {
  Reader reader(text);
  const auto code = static_cast<absl::StatusCode>(reader.Number());
  const std::string word = reader.Word();
  const std::string not_kept = reader.Word();
  if (!reader.ok()) return {absl::InternalError("the compiler's process has left no result"), {}};
  if (code != absl::StatusCode::kOk) return {absl::Status(code, word), {}};
  return {word, not_kept.empty() ? absl::OkStatus() : absl::UnavailableError(not_kept)};
}

}  // namespace torch_lazy::backends
