// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/replay_recorder.h"

#include "lazy/host/lock.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {

ReplayRecorder*& CurrentReplayRecorder() {
  thread_local ReplayRecorder* recorder = nullptr;
  return recorder;
}

void BreakReplay(const std::string& why) {
  ReplayRecorder* recorder = CurrentReplayRecorder();
  if (recorder != nullptr && !recorder->draws_now && recorder->broken.empty()) recorder->broken = why;
}

PhiloxDraw TakeRecordedDraw(uint64_t per_thread) {
  const PhiloxDraw draw = TakeDraw(per_thread);
  ReplayRecorder* recorder = CurrentReplayRecorder();
  if (recorder == nullptr) return draw;
  RecordedDraw& noted = recorder->draws.emplace_back();
  noted.philox = draw;
  noted.per_thread = per_thread;
  return draw;
}

DrawRecorder::DrawRecorder(const Op& op, const torch::jit::Stack& stack) {
  ReplayRecorder* recorder = CurrentReplayRecorder();
  if (recorder == nullptr || !op.random || op.args[0].kind != ArgKind::kTensor || !op.args[0].written) return;
  const auto args = stack.end() - static_cast<ptrdiff_t>(op.args.size());
  LazyStorageImpl* storage = LazyStorageImpl::Of(args[0].toTensor());
  if (storage == nullptr || storage->serial() < recorder->first_serial) return;
  {
    Locked lock(DeviceLock());
    if (storage->content || !storage->touches.empty()) return;
  }
  RecordedDraw draw;
  draw.op = &op;
  draw.serial = storage->serial();
  draw.geometry = GeometryOf(args[0].toTensor());
  draw.size_bytes = storage->nbytes();
  for (size_t a = 1; a < op.args.size(); ++a) {
    if (op.args[a].kind <= ArgKind::kOptionalTensorList) return;
    draw.args.push_back(args[static_cast<ptrdiff_t>(a)]);
  }
  recorder->draws.push_back(std::move(draw));
  recorder->draws_now = true;
}

DrawRecorder::~DrawRecorder() {
  if (ReplayRecorder* recorder = CurrentReplayRecorder()) recorder->draws_now = false;
}

}  // namespace torch_lazy::lazy
