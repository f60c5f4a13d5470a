// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/replay_recorder.h"

#include "lazy/host/lock.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {

Noting*& CurrentNoting() {
  thread_local Noting* noting = nullptr;
  return noting;
}

void BreakNoting(const std::string& why) {
  Noting* noting = CurrentNoting();
  if (noting != nullptr && !noting->draws_now && noting->broken.empty()) noting->broken = why;
}

PhiloxDraw TakeNotedDraw(uint64_t per_thread) {
  const PhiloxDraw draw = TakeDraw(per_thread);
  Noting* noting = CurrentNoting();
  if (noting == nullptr) return draw;
  Draw& noted = noting->draws.emplace_back();
  noted.philox = draw;
  noted.per_thread = per_thread;
  return draw;
}

NoteDraw::NoteDraw(const Op& op, const torch::jit::Stack& stack) {
  Noting* noting = CurrentNoting();
  if (noting == nullptr || !op.random || op.args[0].kind != ArgKind::kTensor || !op.args[0].written) return;
  const auto args = stack.end() - static_cast<ptrdiff_t>(op.args.size());
  LazyStorageImpl* storage = LazyStorageImpl::Of(args[0].toTensor());
  if (storage == nullptr || storage->serial() < noting->first_serial) return;
  {
    Locked lock(DeviceLock());
    if (storage->content || !storage->touches.empty()) return;
  }
  Draw draw;
  draw.op = &op;
  draw.serial = storage->serial();
  draw.geometry = GeometryOf(args[0].toTensor());
  draw.size_bytes = storage->nbytes();
  for (size_t a = 1; a < op.args.size(); ++a) {
    if (op.args[a].kind <= ArgKind::kOptionalTensorList) return;
    draw.args.push_back(args[static_cast<ptrdiff_t>(a)]);
  }
  noting->draws.push_back(std::move(draw));
  noting->draws_now = true;
}

NoteDraw::~NoteDraw() {
  if (Noting* noting = CurrentNoting()) noting->draws_now = false;
}

}  // namespace torch_lazy::lazy
