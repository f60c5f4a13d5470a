// SPDX-License-Identifier: Apache-2.0
#include "lazy/lower/lower_call.h"

#include <bit>

#include "backends/registry.h"
#include "base/check.h"
#include "lazy/lower/lowering.h"
#include "lazy/lower/result_types.h"
#include "lazy/ops/deterministic.h"

namespace torch_lazy::lazy {

namespace {

struct Destination {
  int32_t slot;
  const Geometry* geometry;  // null: undefined, nobody sees it
};

class CallLowering final : public Lowering {
 public:
  CallLowering(GraphWriter* writer, const TrieNode& call) : writer_(*writer), call_(call) {}

  // False if a tensor of the call cannot be said as a value, or a result cannot replace what it is written to.
  bool Prepare() {
    for (const NodeOperand& operand : call_.operands) {
      const auto dtype = DTypeOf(operand.geometry.dtype);
      if (!dtype || ir::IsComplex(*dtype)) return false;  // complex numbers are ATen's
      values_.push_back(writer_.Read(operand.slot, operand.geometry));
      if (values_.back() == ir::kNoValue) return false;
    }
    int32_t slot = call_.first_result_slot;
    for (const ResultShape& result : call_.shape->results) {
      if (result.arg >= 0) continue;
      if (!AddDestination(result.defined ? slot++ : -1, result.defined ? &result.geometry : nullptr)) return false;
    }
    for (const NodeOperand& operand : call_.operands) {
      if (operand.written && !AddDestination(operand.slot, &operand.geometry)) return false;
    }
    return FindTypes();
  }

  bool Run() {
    returned_.assign(destinations_.size(), ir::kNoValue);
    if (!call_.op->facts.row->lower(*this)) return false;
    for (size_t r = 0; r < destinations_.size(); ++r) {
      if (destinations_[r].geometry == nullptr) continue;
      LAZY_CHECK(returned_[r] != ir::kNoValue, call_.op->name, ": its row returned no result ", r);
    }
    for (size_t r = 0; r < destinations_.size(); ++r) {
      if (destinations_[r].geometry != nullptr)
        writer_.Write(destinations_[r].slot, *destinations_[r].geometry, returned_[r]);
    }
    return true;
  }

  ir::Builder& b() override { return writer_.builder(); }
  bool IsForCuda() const override { return backends::Get().target() == codegen::Target::kCuda; }
  bool IsDeterministic() const override { return AreDeterministic(writer_.trace().settings()); }
  int num_args() const override { return static_cast<int>(call_.op->args.size()); }

  bool IsNone(int arg) const override {
    if (FindOperand(arg, -1) >= 0) return false;
    const c10::IValue& value = Argument(arg);
    return value.isNone() || (value.isTensor() && !value.toTensor().defined());
  }

  ir::Value Tensor(int arg) override {
    const int operand = FindOperand(arg, -1);
    return operand >= 0 ? values_[operand] : HostNumber(arg, -1, Argument(arg).toTensor());
  }

  int ListSize(int arg) const override { return static_cast<int>(Argument(arg).toListRef().size()); }

  bool ListIsNone(int arg, int k) const override {
    if (FindOperand(arg, k) >= 0) return false;
    const c10::IValue& value = Argument(arg).toListRef()[k];
    return value.isNone() || !value.toTensor().defined();
  }

  ir::Value ListTensor(int arg, int k) override {
    const int operand = FindOperand(arg, k);
    return operand >= 0 ? values_[operand] : HostNumber(arg, k, Argument(arg).toListRef()[k].toTensor());
  }

  ir::Value Number(int arg, ir::DType as) override { return NumberOf(arg, -1, Argument(arg), as); }
  ir::Value ListNumber(int arg, int k, ir::DType as) override {
    return NumberOf(arg, k, Argument(arg).toListRef()[k], as);
  }

  double StructuralNumber(int arg) const override {
    const c10::IValue& value = Argument(arg);
    return value.isTensor() ? value.toTensor().item().toDouble() : value.toScalar().toDouble();
  }

  bool NumberIsFloat(int arg) const override { return Argument(arg).isDouble(); }
  int64_t Int(int arg) const override { return Argument(arg).toInt(); }
  bool Bool(int arg) const override { return Argument(arg).toBool(); }

  ir::Ints IntList(int arg) const override {
    ir::Ints ints;
    if (Argument(arg).isInt()) return {Argument(arg).toInt()};
    if (Argument(arg).isBoolList()) {
      for (const bool value : Argument(arg).toBoolList()) ints.push_back(value);
      return ints;
    }
    for (const int64_t value : Argument(arg).toIntVector()) ints.push_back(value);
    return ints;
  }

  ir::Dims Extents(int arg) override {
    ir::Dims dims;
    for (const int64_t number : IntList(arg)) dims.push_back(writer_.symbols().ExtentOf(number));
    return dims;
  }

  ir::Ints Sizes(int arg) const override {
    const c10::IntArrayRef sizes = call_.operands[static_cast<size_t>(FindOperand(arg, -1))].geometry.sizes;
    return ir::Ints(sizes.begin(), sizes.end());
  }

  ir::Extent ExtentOf(int64_t number) override { return writer_.symbols().ExtentOf(number); }

  absl::string_view String(int arg) const override {
    const c10::IValue& value = Argument(arg);
    return value.isString() ? absl::string_view(value.toStringRef()) : absl::string_view();
  }

  std::optional<ir::DType> DTypeArg(int arg) const override {
    const c10::IValue& value = Argument(arg);
    return value.isNone() ? std::nullopt : DTypeOf(value.toScalarType());
  }

  int num_results() const override { return static_cast<int>(destinations_.size()); }
  const ir::Type& Result(int k) const override { return types_[k]; }
  bool Wanted(int k) const override { return destinations_[k].geometry != nullptr; }

  void Return(int k, ir::Value value) override {
    if (!Wanted(k)) return;
    const Geometry& geometry = *destinations_[k].geometry;
    returned_[k] = b().BroadcastTo(b().Cast(value, *DTypeOf(geometry.dtype)), writer_.symbols().DimsOf(geometry.sizes));
  }

 private:
  const c10::IValue& Argument(int arg) const { return writer_.trace().Argument(call_, static_cast<size_t>(arg)); }

  int FindOperand(int arg, int item) const {
    for (size_t i = 0; i < call_.operands.size(); ++i) {
      if (call_.operands[i].arg == arg && call_.operands[i].item == item) return static_cast<int>(i);
    }
    return -1;
  }

  bool AddDestination(int32_t slot, const Geometry* geometry) {
    if (geometry != nullptr && (c10::isComplexType(geometry->dtype) || !writer_.CanWrite(slot, *geometry)))
      return false;
    destinations_.push_back({slot, geometry});
    return true;
  }

  // The types of the functional form: the written tensor's, with the dtype that the operator computes in.
  bool FindTypes() {
    const std::vector<std::optional<at::ScalarType>> computed = FunctionalDTypes(call_, writer_.trace());
    for (size_t r = 0; r < destinations_.size(); ++r) {
      ir::Type type{ir::DType::kF32, {}};
      if (destinations_[r].geometry != nullptr) {
        const at::ScalarType dtype =
            r < computed.size() && computed[r] ? *computed[r] : destinations_[r].geometry->dtype;
        if (!DTypeOf(dtype)) return false;
        type = {*DTypeOf(dtype), writer_.symbols().DimsOf(destinations_[r].geometry->sizes)};
      }
      types_.push_back(std::move(type));
    }
    return true;
  }

  ir::Value NumberOf(int arg, int item, const c10::IValue& value, ir::DType as) {
    const bool is_one =
        item < 0 && call_.op->args[static_cast<size_t>(arg)].is_unit && value.isInt() && value.toInt() == 1;
    if (is_one) return b().Const(as, 1);
    LAZY_CHECK(value.isDouble() || value.isInt() || value.isBool(), call_.op->name, ": argument ", arg,
               " is no real number");
    return b().Cast(writer_.Number(call_, arg, item, !value.isDouble()), as);
  }

  ir::Value HostNumber(int arg, int item, const at::Tensor& tensor) {
    const auto dtype = DTypeOf(tensor.scalar_type());
    LAZY_CHECK(dtype && !ir::IsComplex(*dtype), call_.op->name, ": argument ", arg, " is no real number");
    return b().Cast(writer_.Number(call_, arg, item, !ir::IsFloat(*dtype)), *dtype);
  }

  GraphWriter& writer_;
  const TrieNode& call_;
  std::vector<ir::Value> values_;  // per operand
  std::vector<Destination> destinations_;
  std::vector<ir::Type> types_;
  std::vector<ir::Value> returned_;
};

// Complex numbers have no place in a graph's scalars.
bool HasComplexNumber(const GraphWriter& writer, const TrieNode& call) {
  for (size_t arg = 0; arg < call.op->args.size(); ++arg) {
    const c10::IValue& value = writer.trace().Argument(call, arg);
    if (value.isComplexDouble() || (value.isTensor() && value.toTensor().defined() && value.toTensor().is_complex()))
      return true;
  }
  return false;
}

// Writes where it reads something else, or where another item of its list lies. ATen's loops see some of what they have
// written: what comes out depends on their order.
bool SeesWhatItWrites(const TrieNode& call) {
  for (const NodeOperand& written : call.operands) {
    for (const NodeOperand& other : call.operands) {
      if (!written.written || written.slot != other.slot || !Overlap(written.geometry, other.geometry)) continue;
      if (written.item != other.item || !(written.geometry == other.geometry)) return true;
    }
  }
  return false;
}

}  // namespace

bool LowerCall(GraphWriter* writer, const TrieNode& call) {
  if (!call.op->is_lowered() || HasComplexNumber(*writer, call) || SeesWhatItWrites(call)) {
    return false;
  }
  CallLowering lowering(writer, call);
  return lowering.Prepare() && lowering.Run();
}

}  // namespace torch_lazy::lazy
