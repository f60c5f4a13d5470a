// SPDX-License-Identifier: Apache-2.0
#include "device/eager_overrides/rnn_dropout_state.h"

#include <map>
#include <mutex>
#include <optional>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_cudnn_init_dropout_state.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "lazy/cuda/philox.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::device {
namespace {

// In the order of the program: what was recorded before has taken its numbers already. The draws' mutex is held.
at::Tensor NewState(double dropout) {
  // Not seen by the program's modes, nor by autograd.
  const c10::impl::ForceDispatchKeyGuard no_modes{c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})};
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::TensorOptions options = at::device(lazy::EagerDevice());
  const int64_t seed = at::empty({}, options.dtype(at::kLong)).random_().item<int64_t>();
  const at::Tensor state = at::_cudnn_init_dropout_state(dropout, /*train=*/true, seed, options.dtype(at::kByte));
  return lazy::MakeTensor(lazy::MakeStorage(state.storage()), at::kByte, state.sizes(), state.strides());
}

}  // namespace

at::Tensor RnnDropoutState(double dropout) {
  const std::lock_guard<std::mutex> draws(
      lazy::DrawMutex());  // who runs what was recorded under another seed sets that for the moment
  const std::optional<bool> was_seeded = lazy::WasSeeded();
  if (!was_seeded.has_value()) return {};
  lazy::BreakReplay("it draws for dropout between layers of a recurrent net");
  static auto* const states = new std::map<int, at::Tensor>;
  at::Tensor& state = (*states)[lazy::CurrentDevice()];
  if (*was_seeded) state = at::Tensor();  // also if the next line fails, since the question is answered once
  if (!state.defined()) state = NewState(dropout);
  return state;
}

}  // namespace torch_lazy::device
