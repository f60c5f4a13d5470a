// SPDX-License-Identifier: Apache-2.0
#include "lazy/ops/op.h"

#include <mutex>

#include <ATen/core/enum_tag.h>

#include "absl/container/flat_hash_map.h"
#include "lazy/ops/may_fail.h"

namespace torch_lazy::lazy {
namespace {

struct Tables {
  std::mutex lock;
  absl::flat_hash_map<std::string, const Row*> rows;
  absl::flat_hash_map<std::string, Runner> runners;
  absl::flat_hash_map<std::string, bool (*)(ShapeCall&)> shape_rules;
  absl::flat_hash_map<std::string, std::unique_ptr<Op>> ops;
};

Tables& AllTables() {
  static Tables* const tables = new Tables;
  return *tables;
}

ArgKind KindOf(const c10::TypePtr& type) {
  const c10::Type* t = type.get();
  if (t->kind() == c10::TypeKind::OptionalType) t = t->castRaw<c10::OptionalType>()->getElementType().get();
  switch (t->kind()) {
    case c10::TypeKind::TensorType:
      return ArgKind::kTensor;
    case c10::TypeKind::NumberType:
    case c10::TypeKind::FloatType:
      return ArgKind::kNumber;
    case c10::TypeKind::GeneratorType:
      return ArgKind::kGenerator;
    case c10::TypeKind::ListType: {
      const c10::Type* element = t->castRaw<c10::ListType>()->getElementType().get();
      if (element->kind() == c10::TypeKind::TensorType) return ArgKind::kTensorList;
      if (element->kind() == c10::TypeKind::OptionalType) {
        const c10::Type* inner = element->castRaw<c10::OptionalType>()->getElementType().get();
        if (inner->kind() == c10::TypeKind::TensorType) return ArgKind::kOptionalTensorList;
      }
      if (element->kind() == c10::TypeKind::NumberType) return ArgKind::kNumberList;
      return ArgKind::kStructure;
    }
    default:
      return ArgKind::kStructure;
  }
}

// "aten::add_.Tensor" and "aten::add.out" are forms of "aten::add.Tensor"; a row names the functional one.
std::string Key(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

bool TakesTheSame(const c10::FunctionSchema& functional, const std::vector<c10::Argument>& args, size_t count) {
  if (functional.arguments().size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    if (*functional.arguments()[i].real_type() != *args[i].real_type()) return false;
  }
  return true;
}

// The row of an overload: its own, or that of its functional form, which has the same name but for a trailing `_`, and
// takes the same arguments but for written ones at the end. Overload names do not tell: `pow_.Scalar` is in-place
// `pow.Tensor_Scalar`.
const Row* FindRow(const absl::flat_hash_map<std::string, const Row*>& rows, const c10::OperatorHandle& handle) {
  const c10::OperatorName& name = handle.operator_name();
  if (auto row = rows.find(Key(name)); row != rows.end()) return row->second;
  const std::vector<c10::Argument>& args = handle.schema().arguments();
  size_t inputs = args.size();
  while (inputs > 0 && args[inputs - 1].is_out()) --inputs;
  const bool in_place = inputs == args.size() && name.name.back() == '_';
  if (inputs == args.size() && !in_place) return nullptr;
  const std::string base = in_place ? name.name.substr(0, name.name.size() - 1) : name.name;
  for (const auto& [key, row] : rows) {
    const size_t dot = key.find('.');
    if (key.compare(0, dot, base) != 0) continue;
    const auto functional =
        c10::Dispatcher::singleton().findSchema({base, dot == std::string::npos ? "" : key.substr(dot + 1)});
    if (functional && TakesTheSame(functional->schema(), args, inputs)) return row;
  }
  return nullptr;
}

bool IsTensorType(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  return type.kind() == c10::TypeKind::ListType &&
         type.castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::TensorType;
}

// Tagged for the dropout that other devices' kernels have; the CPU's kernels refuse it, and so draw nothing.
bool IsTaggedRandomOnly(const std::string& name) {
  return name.rfind("aten::_scaled_dot_product_flash_attention_for_cpu", 0) == 0;
}

// Tells the size of its result by values, which its tags do not say.
bool HasUntaggedDynamicShape(const std::string& name) {
  return name == "aten::_unique" || name == "aten::_padded_dense_to_jagged_forward";
}

// In all their forms.
Refused RefusedBy(const std::string& name) {
  for (const char* divides : {"aten::div", "aten::floor_divide", "aten::remainder", "aten::fmod"}) {
    if (name.rfind(divides, 0) == 0) return Refused::kZero;
  }
  if (name.rfind("aten::pow", 0) == 0) return Refused::kNegative;
  return name.rfind("aten::add", 0) == 0 || name.rfind("aten::sub", 0) == 0 ? Refused::kTruth : Refused::kNone;
}

bool IsPlainProduct(const std::string& name) {
  return name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm" || name == "aten::baddbmm";
}

}  // namespace

Op::Op(c10::OperatorHandle h) : handle(h), name(Key(h.operator_name())) {
  const c10::FunctionSchema& schema = handle.schema();
  for (const c10::Argument& argument : schema.arguments()) {
    Arg arg;
    arg.kind = KindOf(argument.real_type());
    arg.written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    arg.is_out = argument.is_out();
    const std::optional<c10::IValue>& usual = argument.default_value();
    arg.is_unit = arg.kind == ArgKind::kNumber && usual.has_value() && usual->isInt() && usual->toInt() == 1;
    if (IsOurs(handle) && argument.name() == "seed") seed_arg = static_cast<int>(args.size());
    args.push_back(arg);
    writes |= arg.written;
    takes_tensors |= arg.kind <= ArgKind::kOptionalTensorList && !argument.is_out();
  }
  for (const c10::Argument& result : schema.returns()) {
    int alias = -1;
    if (result.alias_info() != nullptr && result.alias_info()->isWrite()) {
      for (size_t i = 0; i < args.size(); ++i) {
        const c10::AliasInfo* info = schema.arguments()[i].alias_info();
        if (info != nullptr && info->beforeSets() == result.alias_info()->beforeSets()) alias = static_cast<int>(i);
      }
    }
    return_alias.push_back(alias);
    tensor_results = tensor_results && IsTensorType(*result.type());
  }
  refuses = RefusedBy(name);
  updates_list = handle.operator_name().name.starts_with("aten::_foreach_") && writes && schema.returns().empty() &&
                 args[0].written;
  random = handle.hasTag(at::Tag::nondeterministic_seeded) && !IsTaggedRandomOnly(name);
  dynamic_by_mask = name == "aten::index.Tensor";
  immediate = random || (handle.hasTag(at::Tag::dynamic_output_shape) && !dynamic_by_mask) ||
              HasUntaggedDynamicShape(name) || handle.hasTag(at::Tag::data_dependent_output) ||
              handle.hasTag(at::Tag::inplace_view) || !tensor_results ||
              (handle.operator_name().name.rfind("aten::", 0) != 0 && !IsOurs(handle));
  // Structured operators only: their Meta kernel is the code that eager runs. Others have Meta kernels from Python,
  // which need not agree with the CPU; nor need those that Python puts in the place of a structured one (linalg). What
  // has one kernel for all devices, which only calls structured ones, is as good.
  const bool out_form = !schema.arguments().empty() && schema.arguments().back().is_out();
  const bool structured =
      handle.hasKernelForDispatchKey(c10::DispatchKey::Meta) &&
      (out_form || handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional));
  const bool composite = handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) &&
                         !handle.hasKernelForDispatchKey(c10::DispatchKey::CPU);
  pointwise = handle.hasTag(at::Tag::pointwise);
  may_fail = MayFail(handle);
  has_meta =
      (structured && (pointwise || handle.hasTag(at::Tag::reduction) || IsPlainProduct(handle.operator_name().name))) ||
      (composite && pointwise);
}

const Op& OpOf(const c10::OperatorHandle& handle) {
  Tables& tables = AllTables();
  std::string key = Key(handle.operator_name());
  std::lock_guard<std::mutex> lock(tables.lock);
  std::unique_ptr<Op>& op = tables.ops[key];
  if (op == nullptr) {
    op = std::make_unique<Op>(handle);
    op->id = static_cast<uint32_t>(tables.ops.size());
    op->row = FindRow(tables.rows, handle);
    // A call without tensors to read has no other word that tells the size of its result: its numbers do.
    const uint32_t flags = op->row != nullptr ? op->row->flags : 0;
    op->structural_numbers = !op->takes_tensors || (flags & (kStructuralScalars | kRefusesNumbers)) != 0;
    op->immediate |= (flags & kImmediate) != 0;
    op->has_meta &= (flags & kRefusesNumbers) == 0;
    auto runner = tables.runners.find(key);
    if (runner != tables.runners.end()) op->runner = runner->second;
    auto rule = tables.shape_rules.find(key);
    if (rule != tables.shape_rules.end()) op->shape_rule = rule->second;
  }
  return *op;
}

void CountWrites(at::TensorList updated) {
  for (const at::Tensor& tensor : updated) {
    if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  }
}

const Op* FindOp(const std::string& name) {
  Tables& tables = AllTables();
  std::lock_guard<std::mutex> lock(tables.lock);
  auto op = tables.ops.find(name);
  return op == tables.ops.end() ? nullptr : op->second.get();
}

void RegisterRow(const Row& row) {
  Tables& tables = AllTables();
  std::lock_guard<std::mutex> lock(tables.lock);
  tables.rows[row.name] = &row;
}

void RegisterRunner(const char* name, Runner runner) {
  Tables& tables = AllTables();
  std::lock_guard<std::mutex> lock(tables.lock);
  tables.runners[name] = runner;
}

void RegisterShapeRule(const char* name, bool (*rule)(ShapeCall&)) {
  Tables& tables = AllTables();
  std::lock_guard<std::mutex> lock(tables.lock);
  tables.shape_rules[name] = rule;
}

}  // namespace torch_lazy::lazy
