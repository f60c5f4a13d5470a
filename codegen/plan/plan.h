// SPDX-License-Identifier: Apache-2.0
// A compiled graph, not yet bound to sizes and memory.
//
// A plan is what lazy/ runs: for each step in order, bind the extents, launch or call, give back
// the buffers that end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/plan/polynomial.h"
#include "ir/graph.h"
#include "ir/padded_extent.h"

namespace torch_lazy::codegen {

// Where a value lives. Row-major contiguous, dims as in `type`.
struct BufferSpec {
  enum class Kind : uint8_t {
    kParam,   // given by the caller: parameter `index`
    kOutput,  // new memory that becomes output `index`
    kTemp,    // memory from the pool, given back after its last use
  };
  Kind kind;
  int32_t index = -1;
  ir::Type type;
};

// One kernel, free of sizes, scalars and thread counts. Integer scalars arrive bit-cast into the
// double array.
//
// For the CPU, a serial function over a range of its iteration space:
//
//   extern "C" void NAME(void* const* buffers, const int64_t* extents, const double* scalars,
//                        int64_t begin, int64_t end, void* scratch);
//
// For CUDA, blocks of `threads` threads that do `iterations_per_block` iterations each. A text has the entries
// that its plan's launches take (EntryFor), since a compiler takes as long for each: for one instance, given by
// value, for a few, or for many, of which each has a run of blocks.
//
//   struct Arguments {
//     const double* scalars;  // on the device
//     long iterations;
//     void* buffers[B];
//     long extents[E];        // and their sums and products; left out if there are none, as are buffers
//   };
//   extern "C" __global__ void NAME(const __grid_constant__ Arguments one);
//   extern "C" __global__ void NAME_many(const Arguments* many, const int* first_block, int count);
//
// `first_block` is on the device, has count + 1 numbers, and the last is the launch's blocks.
// Blocks are in gridDim.x alone. Where most rows have one length, a further entry is for these alone,
// since a kernel that can do others, too, is slower. Whoever launches finds out. It takes up to
// kMost instances that have as many blocks, by value; they are in gridDim.y:
//
//   struct Several { Arguments of[kMost]; };
//   extern "C" __global__ void NAME_exact(const __grid_constant__ Several several);
//
// The entry for a few instances takes up to kFew by value, since a block that looks its instance up in memory
// begins late. They are in gridDim.y, and gridDim.x is for the largest of them:
//
//   struct Few { Arguments of[kFew]; };
//   extern "C" __global__ void NAME_few(const __grid_constant__ Few few);
struct Kernel {
  static constexpr int kFew = 4;
  // The length, and which of the extents it is; -1: there is no such entry. All buffers are aligned
  // to 16 bytes there.
  struct Exact {
    static constexpr int kMost = 16;
    int32_t extent = -1;
    int64_t length = 0;
  };
  enum class Entry : uint8_t { kOne, kFew, kMany, kExact };
  // Those that the text has, beside that for exact rows: one or more, of which each can do any launch, if one by one.
  struct Entries {
    bool one = true, few = false, many = true;
  };

  std::string name;                  // from the fingerprint of its text: equal texts have equal names
  std::string source;                // header-free C++ or CUDA C++
  int32_t threads = 0;               // CUDA
  int64_t iterations_per_block = 1;  // CUDA
  Exact exact = {};                  // CUDA
  Entries entries = {};              // CUDA
  // The rows that it is fast for, in elements; it is right for any. A longest of 0: for any, too.
  int64_t shortest_row = 0, longest_row = 0;  // CUDA
};

// What a launch of instances of one kernel, with so many blocks each, takes where the kernel has it. A few are by
// value, unless too many blocks of the largest one's grid would begin for nothing.
Kernel::Entry EntryFor(absl::Span<const int64_t> blocks);

// How a launch splits the iteration space [0, product of `range`) over threads.
struct Instance {
  int32_t kernel = -1;
  std::vector<int32_t> buffers;     // indices of BufferSpec, in the order of the kernel's pointers
  std::vector<Polynomial> offsets;  // where in them the pointers point, in elements
  std::vector<int32_t> written;     // of these, what the kernel writes
  std::vector<Polynomial> extents;  // handed to the kernel: extents, strides and offsets
  std::vector<int32_t> scalars;     // indices of the graph's scalars
  ir::Dims range;                   // the iteration space is the product of these
  Monomial row, elements;  // where the kernel is not fast for any rows: their length, and how many elements all have
  int64_t grain = 1;       // smallest piece worth a thread, in iterations; 0: never split
  double cost_per_iteration = 1;      // rough nanoseconds, to decide between serial and parallel
  int64_t scratch_element_bytes = 0;  // a thread's scratch memory has this many bytes ...
  ir::Dims scratch;                   // ... for each element of a block with these dims,
  int64_t scratch_padding_bytes = 0;  // and these
  std::string nodes;                  // what it computes, a line each; for option dump only
};

// The bytes of scratch memory that a thread running the instance needs.
int64_t ScratchBytes(const Instance& instance, absl::Span<const int64_t> symbols);

// A matrix in a buffer, or a batch of them: strides and offset in elements.
struct BoundMatrix {
  int32_t buffer = -1;
  Polynomial offset;
  absl::InlinedVector<Polynomial, 3> strides;  // batch if there is one, row, column
};

struct Step {
  enum class Kind : uint8_t {
    kLaunch,  // all instances are independent and run in one parallel region
    kCall,    // the graph's call node `call`: operands and results are whole buffers
    kMatmul,  // result = x y, for each batch or as a sum over them, or x y and a bias for each row
  };
  Kind kind;
  std::vector<Instance> instances;    // launch
  ir::Value call = ir::kNoValue;      // call: its attrs.index names the record
  std::vector<int32_t> operands;      // call, matmul: buffers
  std::vector<int32_t> results;       // call, matmul: buffers; with inout the same number as the operand's
  BoundMatrix x, y, result;           // matmul
  BoundMatrix bias;                   // matmul: a vector; buffer -1 if there is none
  ir::DType dtype = ir::DType::kF32;  // matmul
  std::vector<Monomial> sizes;        // matmul: batches if there are any, rows, inner, columns
  bool sums = false;                  // matmul: over the batches
  bool is_relu = false;               // matmul: max(0, that); there is a bias
  std::vector<int32_t> frees;         // temporaries whose last use is this step
};

using ir::PaddedExtent;

// The numbers of all symbols, given those of the graph's.
std::vector<int64_t> NumbersOf(absl::Span<const PaddedExtent> padded, absl::Span<const int64_t> symbols);

struct Plan {
  std::vector<PaddedExtent> padded_extents;  // NumbersOf these and a graph's symbols bind the plan
  std::vector<BufferSpec> buffers;
  std::vector<Kernel> kernels;  // distinct by name
  std::vector<Step> steps;
  std::vector<int32_t> outputs;               // buffer of each graph output (a kParam buffer when written in place)
  std::vector<std::vector<int32_t>> origins;  // per kernel: of the nodes that its launches compute, ascending
  std::string ToString() const;               // buffers and steps, readable; the kernels' text is in `kernels`
};

// Are the rows of large launches, at these sizes, such as their kernels are fast for? `symbols`: of all.
bool IsMadeFor(const Plan& plan, absl::Span<const int64_t> symbols);

}  // namespace torch_lazy::codegen
