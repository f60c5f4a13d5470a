// SPDX-License-Identifier: Apache-2.0
#include "codegen/layout/matrix.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace torch_lazy::codegen {
namespace {

// The variables of an identity map: a range for each dim.
struct Loops {
  std::vector<Monomial> extents;
  std::vector<std::pair<int, int>> of_dim;  // first, end

  Loops(const ir::Dims& dims, const Factors& factors) {
    for (const ir::Extent dim : dims) {
      const int first = static_cast<int>(extents.size());
      for (const ir::Extent factor : factors.Of(dim)) extents.push_back(ProductOf({factor}));
      of_dim.emplace_back(first, static_cast<int>(extents.size()));
    }
  }
};

// The one stride of a dim whose variables go through memory like one; 1 if it has none.
std::optional<Polynomial> StrideOf(const Affine& address, const Loops& loops, size_t dim) {
  const auto [first, end] = loops.of_dim[dim];
  if (first == end) return Polynomial(1);
  for (int v = end - 2; v >= first; --v) {
    const Polynomial inner = address.CoefficientOf(v + 1) * Polynomial(loops.extents[v + 1]);
    if (address.CoefficientOf(v) != inner) return std::nullopt;
  }
  return address.CoefficientOf(end - 1);
}

std::optional<Matrix> MatrixIn(const ir::Graph& graph, const Concats& concats, const Factors& factors,
                               const Loops& loops, ir::Value base, const IndexMap& map) {
  const Affine address = AddressIn(graph, concats, base, map, factors);
  Matrix matrix{base, address.offset, {}};
  for (size_t dim = 0; dim < loops.of_dim.size(); ++dim) {
    std::optional<Polynomial> stride = StrideOf(address, loops, dim);
    if (!stride.has_value()) return std::nullopt;
    matrix.strides.push_back(*std::move(stride));
  }
  return matrix;
}

// Batches may be one and the same.
bool SuitsLibraries(const Matrix& matrix) {
  const size_t rank = matrix.strides.size();
  if (rank == 1) return matrix.strides[0].is_one();
  const Polynomial& row = matrix.strides[rank - 2];
  const Polynomial& column = matrix.strides[rank - 1];
  return !row.is_zero() && !column.is_zero() && (row.is_one() || column.is_one());
}

// Through views, as far as the strides suit.
template <typename Suits>
Matrix OperandOf(const ir::Graph& graph, const Concats& concats, const Factors& factors, ir::Value operand,
                 const Suits& suits) {
  const ir::Dims& dims = graph.type(operand).dims;
  const Loops loops(dims, factors);
  IndexMap map = IdentityMap(dims, factors, 0);
  ir::Value base = operand;
  while (ir::Info(graph.node(base).op).kind == ir::Kind::kView) {
    const std::optional<IndexMap> pulled = PullThroughView(graph, base, map, loops.extents, factors);
    if (!pulled.has_value()) break;
    map = *pulled;
    base = graph.node(base).inputs[0];
  }
  std::optional<Matrix> matrix = MatrixIn(graph, concats, factors, loops, base, map);
  const bool is_leaf = ir::Info(graph.node(base).op).kind == ir::Kind::kLeaf && graph.node(base).op != ir::Op::kParam;
  if (matrix.has_value() && !is_leaf && suits(*matrix)) return *std::move(matrix);
  return MatrixAt(graph, concats, factors, operand);
}

Matrix MatrixOf(const ir::Graph& graph, const Concats& concats, const Factors& factors, ir::Value operand) {
  return OperandOf(graph, concats, factors, operand, SuitsLibraries);
}

// True if going on to the next batch is going on along `dim`.
bool Continues(const Matrix& matrix, size_t dim, const Monomial& size) {
  return matrix.strides[0] == matrix.strides[dim] * Polynomial(size);
}

// The batches become part of the size at `into`.
void Join(Product* product, size_t into) {
  for (Matrix* matrix : {&product->x, &product->y, &product->result}) {
    if (matrix->strides.size() == 3) matrix->strides.erase(matrix->strides.begin());
  }
  product->sizes[into] = product->sizes[0] * product->sizes[into];
  product->sizes.erase(product->sizes.begin());
  product->sums = false;
}

}  // namespace

Matrix MatrixAt(const ir::Graph& graph, const Concats& concats, const Factors& factors, ir::Value value) {
  const ir::Dims& dims = graph.type(value).dims;
  return *MatrixIn(graph, concats, factors, Loops(dims, factors), value, IdentityMap(dims, factors, 0));
}

Matrix StridedOperand(const ir::Graph& graph, const Concats& concats, const Factors& factors, ir::Value operand) {
  return OperandOf(graph, concats, factors, operand, [](const Matrix&) { return true; });
}

Product ProductOfMatrices(const ir::Graph& graph, const Concats& concats, const Factors& factors, ir::Value matmul) {
  const ir::Node& node = graph.node(matmul);
  Product product;
  product.x = MatrixOf(graph, concats, factors, node.inputs[0]);
  product.y = MatrixOf(graph, concats, factors, node.inputs[1]);
  product.result = MatrixAt(graph, concats, factors, matmul);
  product.sums = node.op == ir::Op::kMatmulSum;
  product.is_relu = node.op == ir::Op::kMatmulBiasRelu;
  if (ir::HasBias(node)) product.bias = MatrixOf(graph, concats, factors, node.inputs[2]);
  for (const ir::Extent extent : graph.type(node.inputs[0]).dims) product.sizes.push_back(factors.SizeOf(extent));
  product.sizes.push_back(factors.SizeOf(node.type.dims.back()));
  if (product.sizes.size() < 4) return product;
  const Monomial& rows = product.sizes[1];
  const Monomial& inner = product.sizes[2];
  if (product.sums) {
    if (Continues(product.x, 2, inner) && Continues(product.y, 1, inner)) Join(&product, 2);
  } else if (product.y.strides[0].is_zero() && Continues(product.x, 1, rows) && Continues(product.result, 1, rows)) {
    Join(&product, 1);
  }
  return product;
}

}  // namespace torch_lazy::codegen
