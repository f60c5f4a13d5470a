// SPDX-License-Identifier: Apache-2.0
// A row: all that this library knows of an operator beyond its schema and its tags.
//
// The rows stand in device/rows, which shows some (rows.h). lazy/ reads rows and knows no operator.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <ATen/core/stack.h>

namespace torch_lazy::lazy {

class Lowering;
class ShapeCall;

// Facts of an overload and of its in-place and `out=` forms. Those marked (all) hold for every overload of the
// operator.
enum RowFlags : uint32_t {
  kPlain = 0,

  // --- How it is recorded ---
  // It does what its schema says and nothing else. What has no such row, of another library, is run at once.
  kAsDeclared = 1 << 0,
  // Never recorded: the shape or the work depends on data, and its tags do not say so.
  kImmediate = 1 << 1,
  // Truth values among its operands, and nothing else, tell the shape of its result.
  kShapedByMask = 1 << 2,
  // Tagged as random for what other devices do; here it draws nothing.
  kDrawsNothing = 1 << 3,
  // Its argument `seed` was drawn from the device's generator, and so was the next, the offset.
  kTakesSeed = 1 << 4,
  // Recorded although PyTorch could take it apart, or has no kernel of it for the CPU: one record instead of several,
  // and what runs on the CPU is what eager runs there. Of the overload that is named; and of its in-place form.
  kWhole = 1 << 5,
  kWholeInPlace = 1 << 6,
  // In place, eager takes it apart into calls that each write one tensor of its first list.
  kUpdatesEach = 1 << 7,

  // --- Its numbers ---
  // Their values are structure (part of the trace's path), not run-time arguments: pow's exponent.
  kStructuralScalars = 1 << 8,
  // Eager refuses some values, which are structure therefore: ATen is asked about each at once, the first time.
  kRefusesNumbers = 1 << 9,
  // (all) Eager refuses, of integers: 0, as a divisor; negative ones, as an exponent; and a truth value, as a factor.
  kRefusesZero = 1 << 10,
  kRefusesNegative = 1 << 11,
  kRefusesTruth = 1 << 12,
  // (all) Sums, products, quotients and comparisons: eager refuses no number but for its type.
  kTakesAllNumbers = 1 << 13,

  // --- Whether it may fail when it runs ---
  // (all) It takes all values of the shapes and dtypes that it takes. True of what is tagged pointwise or a reduction.
  kTakesAllValues = 1 << 14,
  // (all) It may refuse integers for their value, although its tags or another row say that it takes all.
  kMayFail = 1 << 15,
  // (all) On a GPU its kernel traps where the CPU's raises, and nothing in the process uses that GPU after that: there
  // it refuses no value as far as the host can tell.
  kTrapsOnGpu = 1 << 29,

  // --- Its results ---
  // Bool whatever the operands are.
  kBoolean = 1 << 16,
  // Of real operands, the same bits on each device. True of all that is kBoolean.
  kExact = 1 << 28,
  // Dense, whatever the strides of the operands are.
  kDenseResult = 1 << 17,
  // Neither pointwise nor a reduction, but its Meta kernel is the code that gives eager's shapes.
  kHasMeta = 1 << 18,
  // Its Meta kernel takes calls that eager refuses, and its rule of shape does not.
  kMetaTakesMore = 1 << 19,
  // Pointwise, but refuses floating tensors.
  kIntegersAlone = 1 << 20,

  // --- Its operands ---
  // Tensors of any rank may be on the host, as on every eager device.
  kTakesHostTensors = 1 << 21,
  // A tensor without dimensions is read as a number, which may be on any device beside the one written.
  kTakesNumberOfAnyDevice = 1 << 22,
  // Its kernel reads the second tensor before the first.
  kSecondFirst = 1 << 23,
  // The form with a number does not go by the form with a tensor.
  kKeepsNumber = 1 << 24,
  // What is written becomes what is read, converted.
  kCopies = 1 << 25,
  // What is written does not follow from what was there.
  kFills = 1 << 30,
  // Of images; the other tensors hold a number for each channel.
  kScalesChannels = 1 << 26,

  // --- How it is compiled ---
  // A product of matrices, done by a library: operands and result lie in memory.
  kProduct = 1 << 27,

  // --- How it runs ---
  // (all) On a GPU its library takes tens of milliseconds to prepare for new sizes, and does so once a thread.
  kPreparesByThread = 1u << 31,
};

// How an operator runs on CPU aliases when it is not the operator itself that is called there.
using Runner = void (*)(torch::jit::Stack*);
// See lazy/shapes/shape_rule.h.
using ShapeRule = bool (*)(ShapeCall&);
// Throws if the arguments on the stack are not what the operator takes.
using ArgumentCheck = void (*)(const torch::jit::Stack&);

// Where a convolution has its arguments.
struct ConvolutionArguments {
  int image, weight, bias;
  size_t stride, padding, dilation, transposed, groups;
};

struct Row {
  // Of the functional overload; a form that computes otherwise has a row of its own. With `*` at the end: of all
  // operators whose names begin so, of which flags alone are said.
  const char* name;
  // Lowers one call to primitives (lazy/lower/lowering.h). False: this call cannot be lowered and is run by ATen in its
  // place. Null: never lowered.
  bool (*lower)(Lowering&) = nullptr;
  uint32_t flags = kPlain;
  ShapeRule shape = nullptr;           // of the overload that is named
  Runner runner = nullptr;             // likewise
  ShapeRule shape_in_place = nullptr;  // of its in-place form
  ArgumentCheck check = nullptr;
  const ConvolutionArguments* convolution = nullptr;
  std::span<const std::string_view> words = {};  // strings that eager takes as an argument
};

}  // namespace torch_lazy::lazy
