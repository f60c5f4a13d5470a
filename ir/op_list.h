// SPDX-License-Identifier: Apache-2.0
// The primitive operations: one line each, and the only list of them.
//
// Enum, names, printer, parser, verifier, folding, reference evaluator and code printers derive
// from these columns.
//
// X(Enumerator, text, Kind, inputs, DTypeRule, DTypes, nanoseconds, Traits)
//   Kind       kLeaf        no inputs
//              kElementwise all inputs have the result's dims (broadcasts are explicit `expand`s)
//              kView        an index map of its one input; moves no data by itself
//              kReduce      folds the dims of attribute `dims` (kept as extent 1 if `keepdim`)
//              kPartial     folds outermost or innermost dims, a share at a time
//              kIndexed     reads at places given by data
//              kPut         writes some of its first input anew, in the memory where it lies
//              kConcat      its inputs side by side
//              kMatmul      a product of matrices, left to a library
//              kAttend      attention, one kernel for all of it
//              kCall        run by lazy/, opaque here
//   DTypeRule  kSame        all inputs and the result have one dtype
//              kCompare     inputs have one dtype, the result is bool
//              kSelect      where: bool, then two of the result's dtype
//              kAny         the node's own type says it
//   DTypes     what its inputs may be; of `where`, the two that it chooses from:
//              kFloats      f32 and f64
//              kNumbers     these and integers
//              kReals       these and bool
//              kNotComplex  these and 16-bit floats
//              kEvery       any, or what its kind asks for
//              kBits        bool and integers
//              kBool, kI64  this one
//   nanoseconds  of an element, in vector code on one core
//   Traits     bit set: kCommutes, kTranscendental (<= 2 ulp instead of exact), kNone
//
// 16-bit floats are computed in f32 and rounded by the `cast` that follows; lowering puts these
// casts in. Products alone take and give them: a library's operands lie in memory as they are.
// clang-format off
#ifndef TORCH_LAZY_OP_LIST
#define TORCH_LAZY_OP_LIST(X)                                                                                   \
  /* leaves */                                                                                                  \
  X(Param, "param", kLeaf, 0, kAny, kEvery, 0.02, kNone)          /* a buffer given by the caller; attr index */ \
  X(Scalar, "scalar", kLeaf, 0, kAny, kEvery, 0.02, kNone)        /* a number given by the caller, rank 0, f64 or i64; attr index */ \
  X(Const, "const", kLeaf, 0, kAny, kEvery, 0.02, kNone)          /* attr value (f) or (i) for integers and bool; rank 0 */ \
  X(Iota, "iota", kLeaf, 0, kAny, kEvery, 0.02, kNone)            /* index along attr dim; any integer or float dtype */ \
  X(ExtentOf, "extent", kLeaf, 0, kAny, kEvery, 0.02, kNone)      /* the number of attr `extent`, rank 0, i64 */ \
  /* elementwise, one input */                                                                                  \
  X(Cast, "cast", kElementwise, 1, kAny, kNotComplex, 0.02, kNone) /* C's rules; float->bool is x != 0; NaN->int as eager */ \
  X(Neg, "neg", kElementwise, 1, kSame, kNumbers, 0.02, kNone)                                                  \
  X(Abs, "abs", kElementwise, 1, kSame, kNumbers, 0.02, kNone)                                                  \
  X(Sqrt, "sqrt", kElementwise, 1, kSame, kFloats, 0.2, kNone)                                                  \
  X(Rsqrt, "rsqrt", kElementwise, 1, kSame, kFloats, 0.35, kNone) /* 1 / sqrt(x), both rounded */               \
  X(Recip, "reciprocal", kElementwise, 1, kSame, kFloats, 0.15, kNone)                                          \
  X(Exp, "exp", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                         \
  X(Exp2, "exp2", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                       \
  X(Expm1, "expm1", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                     \
  X(Log, "log", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                         \
  X(Log2, "log2", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                       \
  X(Log10, "log10", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                     \
  X(Log1p, "log1p", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                     \
  X(Sin, "sin", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                         \
  X(Cos, "cos", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                         \
  X(Tan, "tan", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                         \
  X(Tanh, "tanh", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                       \
  X(Erf, "erf", kElementwise, 1, kSame, kFloats, 0.35, kTranscendental)                                         \
  X(Floor, "floor", kElementwise, 1, kSame, kFloats, 0.02, kNone)                                               \
  X(Ceil, "ceil", kElementwise, 1, kSame, kFloats, 0.02, kNone)                                                 \
  X(Trunc, "trunc", kElementwise, 1, kSame, kFloats, 0.02, kNone)                                               \
  X(Round, "round", kElementwise, 1, kSame, kFloats, 0.02, kNone) /* half to even */                            \
  X(Not, "not", kElementwise, 1, kSame, kBits, 0.02, kNone)       /* bool: logical; integers: bitwise */        \
  /* elementwise, two inputs */                                                                                 \
  X(Add, "add", kElementwise, 2, kSame, kReals, 0.02, kCommutes)  /* bool: or */                                \
  X(Sub, "sub", kElementwise, 2, kSame, kNumbers, 0.02, kNone)                                                  \
  X(Mul, "mul", kElementwise, 2, kSame, kReals, 0.02, kCommutes)  /* bool: and */                               \
  X(Div, "div", kElementwise, 2, kSame, kFloats, 0.15, kNone)     /* floats only */                             \
  X(FloorDiv, "floor_div", kElementwise, 2, kSame, kNumbers, 5, kNone) /* towards minus infinity, as ATen's div(floor) */ \
  X(TruncDiv, "trunc_div", kElementwise, 2, kSame, kNumbers, 0.2, kNone)                                        \
  X(Fmod, "fmod", kElementwise, 2, kSame, kNumbers, 5, kNone)     /* C's fmod and % */                          \
  X(Remainder, "remainder", kElementwise, 2, kSame, kNumbers, 5, kNone) /* sign of the divisor */               \
  X(Pow, "pow", kElementwise, 2, kSame, kNumbers, 0.35, kTranscendental)                                        \
  X(Atan2, "atan2", kElementwise, 2, kSame, kFloats, 0.35, kTranscendental)                                     \
  X(Max, "max", kElementwise, 2, kSame, kReals, 0.02, kCommutes)  /* NaN if either is */                        \
  X(Min, "min", kElementwise, 2, kSame, kReals, 0.02, kCommutes)                                                \
  X(And, "and", kElementwise, 2, kSame, kBits, 0.02, kCommutes)   /* bool and integers, bitwise */              \
  X(Or, "or", kElementwise, 2, kSame, kBits, 0.02, kCommutes)                                                   \
  X(Xor, "xor", kElementwise, 2, kSame, kBits, 0.02, kCommutes)                                                 \
  X(Eq, "eq", kElementwise, 2, kCompare, kReals, 0.02, kCommutes)                                               \
  X(Ne, "ne", kElementwise, 2, kCompare, kReals, 0.02, kCommutes)                                               \
  X(Lt, "lt", kElementwise, 2, kCompare, kReals, 0.02, kNone)                                                   \
  X(Le, "le", kElementwise, 2, kCompare, kReals, 0.02, kNone)                                                   \
  X(Gt, "gt", kElementwise, 2, kCompare, kReals, 0.02, kNone)                                                   \
  X(Ge, "ge", kElementwise, 2, kCompare, kReals, 0.02, kNone)                                                   \
  /* elementwise, three inputs */                                                                               \
  X(Fma, "fma", kElementwise, 3, kSame, kFloats, 0.02, kNone)     /* a * b + c, rounded once */                 \
  X(Where, "where", kElementwise, 3, kSelect, kEvery, 0.02, kNone) /* condition, if true, if false */           \
  /* elementwise, six inputs */                                                                                 \
  X(Bernoulli, "bernoulli", kElementwise, 6, kCompare, kI64, 5, kNone) /* (index, seed, offset, threads, width, threshold), i64: a Philox \
                                                        number (philox.h), is it below the threshold; indices and the \
                                                        threshold fit 32 bits */ \
  /* views */                                                                                                   \
  X(Reshape, "reshape", kView, 1, kAny, kEvery, 0.02, kNone)      /* same elements in row-major order; dims = result's */ \
  X(Permute, "permute", kView, 1, kAny, kEvery, 0.02, kNone)      /* result dim k is input dim attr dims[k] */  \
  X(Expand, "expand", kView, 1, kAny, kEvery, 0.02, kNone)        /* same rank; input extents that are 1 grow */ \
  X(Slice, "slice", kView, 1, kAny, kEvery, 0.02, kNone)          /* result dim k reads from attr starts[k] with steps[k] */ \
  /* reductions over attr dims */                                                                               \
  X(Sum, "sum", kReduce, 1, kSame, kNumbers, 0.02, kNone)         /* 16-bit inputs are cast to f32 before */    \
  X(Prod, "prod", kReduce, 1, kSame, kNumbers, 0.02, kNone)                                                     \
  X(ReduceMax, "reduce_max", kReduce, 1, kSame, kReals, 0.02, kNone)                                            \
  X(ReduceMaxNumber, "reduce_max_number", kReduce, 1, kSame, kFloats, 0.02, kNone) /* the largest that is no NaN; floats; -inf if there is none */ \
  X(ReduceMin, "reduce_min", kReduce, 1, kSame, kReals, 0.02, kNone)                                            \
  X(Any, "any", kReduce, 1, kSame, kBool, 0.02, kNone)            /* bool */                                    \
  X(All, "all", kReduce, 1, kSame, kBool, 0.02, kNone)            /* bool */                                    \
  X(ArgMax, "argmax", kReduce, 1, kAny, kReals, 0.02, kNone)      /* i64 index along the one dim, first of equals; NaN wins */ \
  X(ArgMin, "argmin", kReduce, 1, kAny, kReals, 0.02, kNone)                                                    \
  /* partial reductions, [shares, the other dims]: made by codegen alone. Attr dims are the outermost or the innermost; their \
     elements, in order, are cut into so many shares of about one size. */                                       \
  X(ShareSum, "share_sum", kPartial, 1, kAny, kNumbers, 0.02, kNone) /* of floats in f64 */                     \
  X(ShareMax, "share_max", kPartial, 1, kSame, kReals, 0.02, kNone)                                             \
  X(ShareMin, "share_min", kPartial, 1, kSame, kReals, 0.02, kNone)                                             \
  X(ShareAny, "share_any", kPartial, 1, kSame, kBool, 0.02, kNone)                                              \
  X(ShareAll, "share_all", kPartial, 1, kSame, kBool, 0.02, kNone)                                              \
  /* indexed */                                                                                                 \
  X(Take, "take", kIndexed, 2, kAny, kEvery, 1, kNone)            /* (x, index i64): along attr dim d of x, index has the result's dims: \
                                                        out[i0..] = x[i0, .., index[i0..], .., ]; other extents equal or 1 in x */ \
  X(Put, "put", kPut, 3, kAny, kEvery, 1, kNone)                  /* (x, rows, index i64 of one dim): x, with rows[.., k, ..] at index[k] along \
                                                        attr dim, any of equal ones; the kernel traps out of range */ \
  /* several values in one */                                                                                    \
  X(Concat, "concat", kConcat, -1, kSame, kEvery, 0.02, kNone)    /* along attr dim, in order; at least one */  \
  X(Stack, "stack", kConcat, -1, kSame, kEvery, 0.02, kNone)      /* along a new dim, attr dim, of their number */ \
  /* products of floats; 16-bit ones are summed up in f32 and rounded once */                                   \
  X(Matmul, "matmul", kMatmul, 2, kSame, kEvery, 0.02, kNone)     /* [m, k] by [k, n]; both with a batch dim in front, or neither */ \
  X(MatmulSum, "matmul_sum", kMatmul, 2, kSame, kEvery, 0.02, kNone) /* [b, m, k] by [b, k, n], summed over b; f32, f64 */ \
  X(MatmulBias, "matmul_bias", kMatmul, 3, kSame, kEvery, 0.02, kNone) /* [m, k] by [k, n], and [n] added to each row before it is rounded */ \
  X(MatmulBiasRelu, "matmul_bias_relu", kMatmul, 3, kSame, kEvery, 0.02, kNone) /* max(0, that), NaN where that is; made by codegen alone */ \
  /* attention of a few queries, on a GPU: (query, keys, values) of dims [batch, heads, rows, width], keys and values [batch, heads, \
     length, width]; softmax over the length of query keys^T, by values. Query is f32 and has been scaled; keys, values and the result \
     are 16-bit floats; sums are f32 and rounded once. Of a row whose scores all are -inf, 0. */ \
  X(Attend, "attend", kAttend, 3, kAny, kEvery, 0.02, kNone)                                                    \
  X(AttendBiased, "attend_biased", kAttend, 4, kAny, kEvery, 0.02, kNone) /* and a float [batch, heads, rows, length], added to the scores */ \
  /* calls */                                                                                                   \
  X(Call, "call", kCall, -1, kAny, kEvery, 0.02, kNone)           /* attr callee (text), index (record), inout; result 0 is itself */ \
  X(Result, "result", kCall, 1, kAny, kEvery, 0.02, kNone)        /* result attr index (>= 1) of a call */
#endif
// clang-format on
