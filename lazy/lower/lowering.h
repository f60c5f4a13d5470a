// SPDX-License-Identifier: Apache-2.0
// What a row's lowering function sees of one recorded call.
//
// bool LowerAdd(Lowering& call) {
//   ir::Builder& b = call.b();
//   ir::DType type = call.ComputeType();
//   ir::Value x = call.Operand(0, type), y = call.Operand(1, type);       // cast and broadcast to the result's dims
//   call.Return(0, b.Fma(call.Number(2, type), y, x));
//   return true;
// }
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "ir/builder.h"
#include "ir/graph.h"

namespace torch_lazy::lazy {

class Lowering {
 public:
  virtual ~Lowering() = default;
  virtual ir::Builder& b() = 0;
  virtual bool IsForCuda() const = 0;        // what the graph is compiled for, on a GPU or on the emulator
  virtual bool IsDeterministic() const = 0;  // its results are to be the same from run to run

  // --- arguments by position in the schema of the functional form ---
  virtual int num_args() const = 0;
  virtual bool IsNone(int arg) const = 0;   // None, or an undefined tensor
  virtual ir::Value Tensor(int arg) = 0;    // logical dims and dtype of the tensor (0-dim CPU tensors: rank 0)
  virtual int ListSize(int arg) const = 0;  // tensor lists
  virtual bool ListIsNone(int arg, int k) const = 0;
  virtual ir::Value ListTensor(int arg, int k) = 0;
  virtual ir::Value Number(int arg, ir::DType as) = 0;             // a run-time Scalar/float/int, rank 0, cast to `as`
  virtual ir::Value ListNumber(int arg, int k, ir::DType as) = 0;  // number k of a Scalar[]
  virtual double StructuralNumber(int arg) const = 0;              // its value; only for rows with kStructuralScalars
  virtual bool NumberIsFloat(int arg) const = 0;                   // the number's own type
  virtual int64_t Int(int arg) const = 0;                          // schema type int: structure
  virtual bool Bool(int arg) const = 0;
  virtual ir::Ints IntList(int arg) const = 0;          // int[]
  virtual ir::Dims Extents(int arg) = 0;                // SymInt or SymInt[] as extents
  virtual ir::Ints Sizes(int arg) const = 0;            // of a tensor of the device
  virtual ir::Extent ExtentOf(int64_t number) = 0;      // of what follows from sizes and structure
  virtual absl::string_view String(int arg) const = 0;  // empty if None
  virtual std::optional<ir::DType> DTypeArg(int arg) const = 0;

  // --- results: new tensors first, then written arguments, each in the order of the schema ---
  virtual int num_results() const = 0;
  // What the functional form would return: logical dims, and the dtype the op computes its result in.
  virtual const ir::Type& Result(int k) const = 0;
  // False if nobody can see result k (undefined by an output mask): Return need not be called for it.
  virtual bool Wanted(int k) const = 0;
  // `value` has result k's logical dims (or broadcasts to them); it is cast to the type of the tensor written.
  virtual void Return(int k, ir::Value value) = 0;

  // --- shorthand built on the above (lowering.cc) ---
  ir::DType ComputeType() const;             // Result(0).dtype, f32 for the 16-bit floats
  ir::Value Operand(int arg, ir::DType as);  // Tensor(arg) cast to `as` and broadcast to Result(0)'s dims
};

}  // namespace torch_lazy::lazy
