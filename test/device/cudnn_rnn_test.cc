// SPDX-License-Identifier: Apache-2.0
// cuDNN's recurrent nets as the device records them. In cuDNN's place runs PyTorch's own composite, on what cuDNN would
// be given: so what is told here is that it is given the right weights and states, and that what comes back goes to the
// right places.
#include <functional>
#include <numeric>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "device/eager_overrides/cudnn_weights.h"
#include "device/eager_overrides/runner.h"
#include "lazy/ops/op.h"
#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;
using OptionalTensor = std::optional<Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

constexpr int64_t kReserved = 24;  // bytes, as if cuDNN wanted so many

struct Net {
  RnnForm form = {RnnMode::kLstm, 5, 6, 0, 1, false};
  bool has_biases = true, batch_first = false;
  Ints batch_sizes = {};
  int64_t per_layer() const { return (has_biases ? 4 : 2) + (form.proj_size != 0 ? 1 : 0); }
  int64_t states() const { return form.num_layers * form.num_directions(); }
  int64_t gates() const { return form.mode == RnnMode::kLstm ? 4 : form.mode == RnnMode::kGru ? 3 : 1; }
};

// In PyTorch's order.
std::vector<Ints> SizesOfWeights(const Net& net) {
  std::vector<Ints> sizes;
  const int64_t rows = net.gates() * net.form.hidden_size;
  for (int64_t k = 0; k < net.states(); ++k) {
    const int64_t input =
        k < net.form.num_directions() ? net.form.input_size : net.form.output_size() * net.form.num_directions();
    sizes.insert(sizes.end(), {{rows, input}, {rows, net.form.output_size()}});
    if (net.has_biases) sizes.insert(sizes.end(), {{rows}, {rows}});
    if (net.form.proj_size != 0) sizes.push_back({net.form.proj_size, net.form.hidden_size});
  }
  return sizes;
}

Tensor BatchSizes(const Net& net) { return at::tensor(at::IntArrayRef(net.batch_sizes)); }

// Output, hy, and cy of an LSTM, by PyTorch.
Tensors Composite(const Net& net, const Tensor& input, const Tensor& hx, const Tensor& cx, at::TensorList weights) {
  const int64_t layers = net.form.num_layers;
  const bool is_packed = !net.batch_sizes.empty(), bidirectional = net.form.bidirectional;
  if (net.form.mode == RnnMode::kLstm) {
    const auto [y, hy, cy] =
        is_packed
            ? at::lstm(input, BatchSizes(net), {hx, cx}, weights, net.has_biases, layers, 0., true, bidirectional)
            : at::lstm(input, {hx, cx}, weights, net.has_biases, layers, 0., true, bidirectional, net.batch_first);
    return {y, hy, cy};
  }
  const auto run = [&](auto whole, auto packed) -> Tensors {
    const auto [y, hy] =
        is_packed ? packed(input, BatchSizes(net), hx, weights, net.has_biases, layers, 0., true, bidirectional)
                  : whole(input, hx, weights, net.has_biases, layers, 0., true, bidirectional, net.batch_first);
    return {y, hy};
  };
  const auto of = [&](auto name) {
    return run([&](auto&&... args) { return name(args...); }, [&](auto&&... args) { return name(args...); });
  };
  if (net.form.mode == RnnMode::kGru) return of([](auto&&... args) { return at::gru(args...); });
  if (net.form.mode == RnnMode::kTanh) return of([](auto&&... args) { return at::rnn_tanh(args...); });
  return of([](auto&&... args) { return at::rnn_relu(args...); });
}

// ---- in cuDNN's place ----

bool has_biases = true;  // of the net under test, which cuDNN is not told
int forward_runs = 0, backward_runs = 0;

Net NetOf(const Tensor& input, int64_t mode, int64_t hidden_size, int64_t proj_size, int64_t num_layers,
          bool batch_first, bool bidirectional, Ints batch_sizes) {
  return {{static_cast<RnnMode>(mode), input.size(-1), hidden_size, proj_size, num_layers, bidirectional},
          has_biases,
          batch_first,
          std::move(batch_sizes)};
}

Tensors WeightsIn(const Tensor& buffer, const Net& net) {
  Tensors weights;
  int64_t offset = 0;
  for (const Ints& sizes : SizesOfWeights(net)) {
    const int64_t count = c10::multiply_integers(sizes);
    weights.push_back(buffer.narrow(0, offset, count)
                          .view(sizes)
                          .clone());  // aligned as the program's are: MKL rounds otherwise where not
    offset += count;
  }
  return weights;
}

Four Forward(Tensor input, Tensor weights, Tensor hx, OptionalTensor cx, OptionalTensor dropout_state, int64_t mode,
             int64_t hidden_size, int64_t proj_size, int64_t num_layers, bool batch_first, double, bool train,
             bool bidirectional, Ints batch_sizes, bool) {
  ++forward_runs;
  if (dropout_state.has_value()) dropout_state->add_(1);
  const Net net =
      NetOf(input, mode, hidden_size, proj_size, num_layers, batch_first, bidirectional, std::move(batch_sizes));
  const Tensor wide = input.to(at::kFloat);
  const auto as_float = [](const Tensor& tensor) { return tensor.to(at::kFloat); };
  const Tensor buffer = as_float(weights);
  Tensors results = Composite(net, wide, as_float(hx), cx ? as_float(*cx) : Tensor(), WeightsIn(buffer, net));
  if (results.size() == 2) results.push_back(at::zeros({0}));
  for (Tensor& result : results) result = result.to(input.scalar_type());
  // As cuDNN's, which lies by time.
  if (batch_first && net.batch_sizes.empty()) results[0] = results[0].transpose(0, 1).contiguous().transpose(0, 1);
  return {results[0], results[1].contiguous(), results[2].contiguous(), at::zeros({train ? kReserved : 0}, at::kByte)};
}

Four Backward(Tensor input, Tensor weights, Tensor hx, OptionalTensor cx, Tensor, OptionalTensor grad_output,
              OptionalTensor grad_hy, OptionalTensor grad_cy, OptionalTensor, Tensor reserve, int64_t mode,
              int64_t hidden_size, int64_t proj_size, int64_t num_layers, bool batch_first, double, bool,
              bool bidirectional, Ints batch_sizes, std::array<bool, 4> wanted, bool) {
  ++backward_runs;
  EXPECT_EQ(reserve.sum().item<int64_t>(), 0) << "what was reserved has been used before";
  reserve.fill_(1);  // as cuDNN's, which is of no use to a second pass
  const Net net =
      NetOf(input, mode, hidden_size, proj_size, num_layers, batch_first, bidirectional, std::move(batch_sizes));
  const c10::impl::ForceDispatchKeyGuard with_autograd{
      c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})};
  const at::AutoGradMode grad_mode(true);
  const auto leaf = [](const Tensor& tensor) { return tensor.detach().to(at::kFloat).clone().requires_grad_(); };
  const Tensor x = leaf(input), h = leaf(hx), c = cx ? leaf(*cx) : Tensor(), w = leaf(weights);
  const Tensors results = Composite(net, x, h, c, WeightsIn(w, net));
  Tensor sum = at::zeros({});
  const OptionalTensor gradients[] = {grad_output, grad_hy, grad_cy};
  for (size_t k = 0; k < results.size(); ++k) {
    if (gradients[k].has_value()) sum = sum + (results[k] * gradients[k]->to(at::kFloat)).sum();
  }
  sum.backward();
  const auto back = [&](const Tensor& tensor) {
    return tensor.defined() ? tensor.grad().to(input.scalar_type()) : Tensor();
  };
  Tensor grad_input = back(x);
  if (batch_first && net.batch_sizes.empty()) grad_input = grad_input.transpose(0, 1).contiguous().transpose(0, 1);
  return {grad_input, back(h), back(c), wanted[3] ? back(w) : Tensor()};
}

// ---- the tests ----

struct Run {
  Tensors results, leaves;
};

// Inputs and weights on the device, all of which want gradients.
Tensors Leaves(const Net& net, at::Device device) {
  at::manual_seed(0);
  Tensors leaves;
  const auto add = [&](c10::IntArrayRef sizes) { leaves.push_back(at::randn(sizes).to(device).requires_grad_()); };
  constexpr int64_t kBatch = 3, kSteps = 4;
  const int64_t rows = std::accumulate(net.batch_sizes.begin(), net.batch_sizes.end(), int64_t{0});
  if (!net.batch_sizes.empty()) {
    add({rows, net.form.input_size});
  } else {
    add(net.batch_first ? Ints{kBatch, kSteps, net.form.input_size} : Ints{kSteps, kBatch, net.form.input_size});
  }
  add({net.states(), kBatch, net.form.output_size()});
  add({net.states(), kBatch, net.form.hidden_size});
  for (const Ints& sizes : SizesOfWeights(net)) add(sizes);
  return leaves;
}

Tensors ByCudnn(const Net& net, const Tensors& leaves, bool train = true,
                const OptionalTensor& dropout_state = std::nullopt) {
  has_biases = net.has_biases;
  const OptionalTensor cx = net.form.mode == RnnMode::kLstm ? OptionalTensor(leaves[2]) : std::nullopt;
  const auto [y, hy, cy, reserve, weights] =
      at::_cudnn_rnn(leaves[0], at::TensorList(leaves).slice(3), net.per_layer(), std::nullopt, leaves[1], cx,
                     static_cast<int64_t>(net.form.mode), net.form.hidden_size, net.form.proj_size, net.form.num_layers,
                     net.batch_first, 0., train, net.form.bidirectional, net.batch_sizes, dropout_state);
  Tensors results = {y, hy};
  if (cx.has_value()) results.push_back(cy);
  return results;
}

Tensor SumOf(const Tensors& results) {
  Tensor sum = results[0].square().sum();
  for (size_t k = 1; k < results.size(); ++k) sum = sum + (results[k] * static_cast<double>(k)).sum();
  return sum;
}

const lazy::Row& RowOf(const char* name) {
  return *lazy::FactsOf(c10::Dispatcher::singleton().findSchemaOrThrow(name, "")).row;
}

class CudnnRnn : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static lazy::Row rows[] = {RowOf("torch_lazy::cudnn_rnn"), RowOf("torch_lazy::cudnn_rnn_backward")};
    rows[0].runner = &Runner<Forward>;
    rows[1].runner = &Runner<Backward>;
    for (const lazy::Row& row : rows) lazy::RegisterRow(row);
  }
  // Eager takes oneDNN's LSTM where it may, which is another sum in another order.
  void SetUp() override { at::globalContext().setUserEnabledMkldnn(false); }
  void TearDown() override { at::globalContext().setUserEnabledMkldnn(true); }
};

// `error`: relative, where strided operands are added up in another order.
void ExpectEagers(const Net& net, double error = 0) {
  const auto is_like = [&](const Tensor& lazy, const Tensor& cpu) {
    return lazy.sizes() == cpu.sizes() && lazy.cpu().allclose(cpu, error, error);
  };
  const Tensors cpu = Leaves(net, at::kCPU);
  const Tensors expected = Composite(net, cpu[0], cpu[1], cpu[2], at::TensorList(cpu).slice(3));
  SumOf(expected).backward();
  for (int step = 0; step < 4; ++step) {  // the first at once, then recorded, then planned
    const Tensors lazy = Leaves(net, Lazy());
    const Tensors results = ByCudnn(net, lazy);
    SumOf(results).backward();
    for (size_t k = 0; k < results.size(); ++k) {
      EXPECT_TRUE(is_like(results[k].detach(), expected[k].detach())) << "result " << k << " step " << step;
      EXPECT_EQ(results[k].strides(), expected[k].strides());
    }
    for (size_t k = 0; k < lazy.size(); ++k) {
      if (!cpu[k].grad().defined()) continue;
      ASSERT_TRUE(lazy[k].grad().defined()) << k;
      EXPECT_TRUE(is_like(lazy[k].grad(), cpu[k].grad())) << "leaf " << k << " step " << step;
    }
  }
}

TEST_F(CudnnRnn, IsGivenWhatEagerWouldGiveIt) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kTanh, RnnMode::kRelu}) {
    for (const int64_t layers : {1, 2}) {
      for (const bool bidirectional : {false, true}) {
        Net net;
        net.form = {mode, 5, 6, 0, layers, bidirectional};
        SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(mode) << ", layers " << layers
                                        << ", bidirectional " << bidirectional);
        ExpectEagers(net);
      }
    }
  }
}

TEST_F(CudnnRnn, TakesBatchesFirst) {
  Net net;
  net.batch_first = true;
  ExpectEagers(net, /*error=*/1e-6);
}

TEST_F(CudnnRnn, TakesPackedSequences) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    Net net;
    net.form.mode = mode;
    net.form.num_layers = 2;
    net.batch_sizes = {3, 2, 2, 1};
    ExpectEagers(net);
  }
}

TEST_F(CudnnRnn, TakesNetsWithoutBiases) {
  Net net;
  net.has_biases = false;
  net.form.num_layers = 2;
  ExpectEagers(net);
}

TEST_F(CudnnRnn, TakesProjections) {
  Net net;
  net.form.proj_size = 2;
  net.form.bidirectional = true;
  net.form.num_layers = 2;
  ExpectEagers(net);
}

TEST_F(CudnnRnn, IsRecorded) {
  const Net net;
  const auto step = [&] {
    const Tensors leaves = Leaves(net, Lazy());
    SumOf(ByCudnn(net, leaves)).backward();
    return leaves[3].grad().cpu();
  };
  step();
  const int64_t before = Metric("calls_immediate");
  step();
  EXPECT_EQ(Metric("calls_immediate"), before);
}

TEST_F(CudnnRnn, KeepsWhatIsReservedForASecondPass) {
  const Net net;
  const Tensors leaves = Leaves(net, Lazy());
  const Tensor sum = SumOf(ByCudnn(net, leaves));
  sum.backward({}, /*retain_graph=*/true);
  const Tensor once = leaves[3].grad().cpu();
  sum.backward();
  EXPECT_TRUE(leaves[3].grad().cpu().equal(once * 2));
}

TEST_F(CudnnRnn, MovesTheStateOfDropoutOnInTheOrderOfTheProgram) {
  const Net net;
  const at::NoGradGuard no_grad;
  const Tensor state = at::zeros({3}, at::kByte).to(Lazy());
  const Tensors leaves = Leaves(net, Lazy());
  const Tensor before = state.clone();
  ByCudnn(net, leaves, /*train=*/true, state);
  const Tensor between = state.clone();
  ByCudnn(net, leaves, /*train=*/true, state);
  EXPECT_EQ(before.sum().item<int64_t>(), 0);
  EXPECT_EQ(between.sum().item<int64_t>(), 3);
  EXPECT_EQ(state.sum().item<int64_t>(), 6);
}

void ExpectRefused(const std::function<void()>& call, const std::string& message) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << message;
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST_F(CudnnRnn, RefusesWhatEagerRefuses) {
  const Net net;
  Tensors leaves = Leaves(net, Lazy());
  ExpectRefused([&] { SumOf(ByCudnn(net, leaves, /*train=*/false)).backward(); },
                "cudnn RNN backward can only be called in training mode");
  const Tensors turned = {
      leaves[0], leaves[1].transpose(0, 2).contiguous().transpose(0, 2), leaves[2], leaves[3], leaves[4], leaves[5],
      leaves[6]};
  ExpectRefused([&] { ByCudnn(net, turned); }, "rnn: hx is not contiguous");
  Tensors narrow = leaves;
  narrow[1] = leaves[1].detach().narrow(1, 0, 2).contiguous();
  ExpectRefused([&] { ByCudnn(net, narrow); }, "Expected hidden size [1, 3, 6], got [1, 2, 6]");
  Tensors wide = leaves;
  wide[0] = leaves[0].to(at::kDouble);
  ExpectRefused([&] { ByCudnn(net, wide); }, "tensors are not the same dtype, found input tensor with Double");
  Tensors other = leaves;
  other[3] = at::zeros({24, 4}).to(Lazy());
  ExpectRefused([&] { ByCudnn(net, other); }, "RNN parameter 0 has sizes [24, 4], expected [24, 5]");
}

TEST_F(CudnnRnn, HasNoSecondDerivative) {
  const Net net;
  const Tensors leaves = Leaves(net, Lazy());
  const Tensor sum = SumOf(ByCudnn(net, leaves));
  sum.backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  ExpectRefused([&] { leaves[0].grad().square().sum().backward(); },
                "Double backwards is not supported for CuDNN RNNs");
}

TEST_F(CudnnRnn, IsFloat16UnderAutocast) {
  const Net net;
  const Tensors leaves = Leaves(net, Lazy());
  at::autocast::set_autocast_dtype(at::kPrivateUse1, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kPrivateUse1, true);
  const Tensors results = ByCudnn(net, leaves);
  at::autocast::set_autocast_enabled(at::kPrivateUse1, false);
  at::autocast::clear_cache();
  for (const Tensor& result : results) EXPECT_EQ(result.scalar_type(), at::kHalf);
  SumOf({results[0].to(at::kFloat)}).backward();
  for (const size_t leaf : {size_t{0}, size_t{3}, size_t{5}}) EXPECT_EQ(leaves[leaf].grad().scalar_type(), at::kFloat);
  const Tensors cpu = Leaves(net, at::kCPU);
  const Tensors exact = Composite(net, cpu[0], cpu[1], cpu[2], at::TensorList(cpu).slice(3));
  EXPECT_LT((results[0].cpu().to(at::kFloat) - exact[0]).abs().max().item<float>(), 5e-3);
}

TEST(CudnnWeights, LieWhereTheLayoutSaysAndZerosBetween) {
  const Tensors weights = {Iota({2, 2}) + 1, Iota({3}) + 10};
  const WeightsLayout layout = {10, {5, 1}};
  const Tensor buffer = PackWeights(weights, layout);
  EXPECT_TRUE(buffer.equal(at::tensor({0, 10, 11, 12, 0, 1, 2, 3, 4, 0}, at::kFloat)));
  const Tensors unpacked = UnpackWeights(buffer, weights, layout);
  for (size_t k = 0; k < weights.size(); ++k)
    EXPECT_TRUE(unpacked[k].equal(weights[k]) && !unpacked[k].is_alias_of(buffer));
}

}  // namespace
}  // namespace torch_lazy::device
