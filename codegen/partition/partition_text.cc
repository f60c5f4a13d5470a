// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/partition_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/print.h"

namespace torch_lazy::codegen {
namespace {

constexpr std::pair<absl::string_view, absl::string_view> kWords[] = {
    {"holds_memory", "its inputs would have to be kept until its reader runs"},
    {"one_reader", "only one kernel reads it"},
    {"is_cheap", "to compute it again costs less than to load it"},
    {"is_held_anyway", "all that it is made of is kept anyway"},
    {"moves_more_if_stored", "to store it would move more memory than to compute it again"},
    {"is_folded_again", "each reader has the row that it is folded from"},
    {"made_of_what_is_read", "the kernel reads all that it is made of"},
    {"single_result", "others wait for its one number, and need not wait for more"},
    {"belongs_to_rows", "it follows from sums along rows, and the kernel walks down columns"},
    {"stores_much", "the kernel stores as many results as a GPU's threads can serve"},
    {"full", "the kernel computes as much as registers hold"},
    {"busy", "the kernel computes about as long as memory moves"},
    {"repeats_many_ops", "many operations would be done again for each place of a broadcast"},
    {"repeats_costly_op", "a costly operation would be done again for each place of a broadcast"},
    {"rounds_sum_of_puts", "it is a sum that is stored as narrow as it is rounded, and put beside other rows"},
    {"repeats_vector", "each row of a matrix is multiplied by it, and would make it again"},
    {"needed_at_many_places", "the kernel needs several of its elements at a time"},
    {"read_by_its_shares", "blocks that make shares of one row would all store it"},
    {"read_at_other_places", "the kernel reads elements of other places"},
    {"needed_before", "something between the two has to run first"},
    {"loops_do_not_fit", "it needs other loops than the kernel has"},
    {"other_loops", "it needs other loops than the kernel has"},
    {"other_dims", "it is folded from a value of other dimensions"},
    {"other_rows", "the kernel walks along other rows"},
    {"awaited", "somebody waits for it, and would wait for the whole kernel"},
};

absl::string_view NameOf(Group::Shape shape) {
  switch (shape) {
    case Group::Shape::kMap:
      return "map";
    case Group::Shape::kRows:
      return "rows";
    case Group::Shape::kColumns:
      return "columns";
    case Group::Shape::kRowShares:
      return "row_shares";
    case Group::Shape::kColumnShares:
      return "column_shares";
  }
  return "";
}

class Writer {
 public:
  explicit Writer(const ir::Graph& graph) : names_(ir::ValueNames(graph)) {}

  std::string LineOf(int index, const Group& group, const std::vector<Reason>& reasons) const {
    std::vector<ir::Value> computed(group.computed.begin(), group.computed.end()), stored;
    std::sort(computed.begin(), computed.end());
    for (const Group::Root& root : group.roots) stored.push_back(root.value);
    std::string line =
        absl::StrCat("  group ", index, " ", NameOf(group.shape), ": ", NamesOf(computed), " -> ", NamesOf(stored));
    std::vector<std::string> notes;
    for (const Reason& reason : reasons) {
      if (reason.group != index || reason.rule == "one_reader" || group.computes(reason.value) != reason.is_computed)
        continue;
      std::string note =
          absl::StrCat(" | ", names_[reason.value], reason.is_computed ? " again: " : " not joined: ", reason.rule);
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
    }
    return absl::StrCat(line, absl::StrJoin(notes, ""), "\n");
  }

 private:
  std::string NamesOf(const std::vector<ir::Value>& values) const {
    return absl::StrJoin(values, ", ", [&](std::string* out, ir::Value v) { absl::StrAppend(out, names_[v]); });
  }

  const std::vector<std::string> names_;
};

}  // namespace

std::string PartitionText(const ir::Graph& graph, const Partition& partition, const std::vector<Reason>& reasons) {
  const Writer writer(graph);
  std::string text = "partition {\n";
  for (size_t g = 0; g < partition.groups.size(); ++g)
    absl::StrAppend(&text, writer.LineOf(static_cast<int>(g), partition.groups[g], reasons));
  return absl::StrCat(text, "}\n");
}

absl::string_view WordsFor(absl::string_view rule) {
  const auto found =
      std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& row) { return row.first == rule; });
  return found == std::end(kWords) ? "" : found->second;
}

}  // namespace torch_lazy::codegen
