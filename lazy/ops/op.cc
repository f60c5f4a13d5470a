// SPDX-License-Identifier: Apache-2.0
#include "lazy/ops/op.h"
#include "base/fingerprint.h"

#include <mutex>

#include <ATen/core/enum_tag.h>

#include "absl/container/flat_hash_map.h"

namespace torch_lazy::lazy {
namespace {

struct Ops {
  std::mutex lock;
  absl::flat_hash_map<std::string, std::unique_ptr<Op>> by_name;
};

Ops& AllOps() {
  static Ops* const ops = new Ops;
  return *ops;
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

bool IsTensorType(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  return type.kind() == c10::TypeKind::ListType &&
         type.castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::TensorType;
}

// Integers that eager refuses are among the values.
constexpr uint32_t kRefusesIntegers = kRefusesZero | kRefusesNegative | kMayFail;

}  // namespace

Op::Op(c10::OperatorHandle h)
    : handle(h),
      name(NameOf(h.operator_name())),
      num_at_once(base::Cell(base::Tally::kCallsImmediateByOp, name)),
      facts(FactsOf(h)) {
  runner = facts.runner();
  shape_rule = facts.shape_rule();
  ReadArguments();
  ReadResults();
  pointwise = handle.hasTag(at::Tag::pointwise);
  updates_list = Has(kUpdatesEach) && writes && return_alias.empty() && args[0].written;
  random = handle.hasTag(at::Tag::nondeterministic_seeded) && !Has(kDrawsNothing);
  writes_exactly = writes && Has(kExact);
  // A call without tensors to read has no other word that tells the size of its result: its numbers do.
  structural_numbers = !takes_tensors || (facts.flags & (kStructuralScalars | kRefusesNumbers)) != 0;
  dynamic_by_mask = Has(kShapedByMask) && facts.form == RowForm::kNamed;
  irregular = IsIrregular();
  immediate = irregular || (handle.hasTag(at::Tag::dynamic_output_shape) && !dynamic_by_mask);
  has_meta = HasMeta();
  may_fail_ = MayFail();
}

void Op::ReadArguments() {
  for (const c10::Argument& argument : handle.schema().arguments()) {
    Arg arg;
    arg.kind = KindOf(argument.real_type());
    arg.written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    arg.is_out = argument.is_out();
    const std::optional<c10::IValue>& usual = argument.default_value();
    arg.is_unit = arg.kind == ArgKind::kNumber && usual.has_value() && usual->isInt() && usual->toInt() == 1;
    if (Has(kTakesSeed) && argument.name() == "seed") seed_arg = static_cast<int>(args.size());
    args.push_back(arg);
    writes |= arg.written;
    takes_tensors |= arg.kind <= ArgKind::kOptionalTensorList && !argument.is_out();
  }
}

void Op::ReadResults() {
  const c10::FunctionSchema& schema = handle.schema();
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
}

bool Op::IsIrregular() const {
  return random || Has(kImmediate) || handle.hasTag(at::Tag::data_dependent_output) ||
         handle.hasTag(at::Tag::inplace_view) || !tensor_results || !Has(kAsDeclared);
}

// Structured operators only: their Meta kernel is the code that eager runs. Others have Meta kernels from Python, which
// need not agree with the CPU; nor need those that Python puts in the place of a structured one (linalg). What has one
// kernel for all devices, which only calls structured ones, is as good.
bool Op::HasMeta() const {
  if (Has(kRefusesNumbers)) return false;
  const bool out_form = !args.empty() && args.back().is_out;
  const bool structured =
      handle.hasKernelForDispatchKey(c10::DispatchKey::Meta) &&
      (out_form || handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional));
  const bool composite = handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) &&
                         !handle.hasKernelForDispatchKey(c10::DispatchKey::CPU);
  const bool agrees =
      pointwise || handle.hasTag(at::Tag::reduction) || (Has(kHasMeta) && facts.form != RowForm::kInPlace);
  return (structured && agrees) || (composite && pointwise);
}

// See Note [Failing calls].
bool Op::MayFail() const {
  if ((facts.flags & kRefusesIntegers) != 0) return true;
  if (Has(kTakesAllValues)) return false;
  return !Has(kAsDeclared) || (!pointwise && !handle.hasTag(at::Tag::reduction));
}

const Op& OpOf(const c10::OperatorHandle& handle) {
  Ops& ops = AllOps();
  std::lock_guard<std::mutex> lock(ops.lock);
  std::unique_ptr<Op>& op = ops.by_name[NameOf(handle.operator_name())];
  if (op == nullptr) {
    op = std::make_unique<Op>(handle);
    op->id = static_cast<uint32_t>(ops.by_name.size());
    op->name_hash = base::FingerprintOf(op->name).low;
  }
  return *op;
}

void CountWrites(at::TensorList updated) {
  for (const at::Tensor& tensor : updated) {
    if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  }
}

const Op* FindOp(const std::string& name) {
  Ops& ops = AllOps();
  std::lock_guard<std::mutex> lock(ops.lock);
  const auto op = ops.by_name.find(name);
  return op == ops.by_name.end() ? nullptr : op->second.get();
}

}  // namespace torch_lazy::lazy
