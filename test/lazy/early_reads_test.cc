// SPDX-License-Identifier: Apache-2.0
// Which values are read early, where CUDA graphs are emulated: LAZY_BACKEND is stand_in here.
#include "lazy/cuts/early_reads.h"

#include <memory>

#include "gtest/gtest.h"
#include "lazy/eager/memory.h"
#include "lazy/eager/queue_mark.h"
#include "lazy/host/lock.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {
namespace {

// A storage of 8 bytes that a part of a step has written.
class EarlyReads : public testing::Test {
 protected:
  explicit EarlyReads(bool exposed = false, size_t size_bytes = 8)
      : tensor_(MakeTensor(MakeStorage(NewContent(size_bytes), exposed), at::kFloat, {2}, {1})) {
    static_cast<float*>(storage()->content.mutable_data())[1] = 5;
  }

  LazyStorageImpl* storage() { return LazyStorageImpl::Of(tensor_); }

  void Note(bool written = true, bool is_part = true) {
    Trace trace;
    trace.slots.push_back({storage()->content, storage(), storage()->nbytes(), /*external=*/false, written});
    if (is_part) trace.end = std::make_shared<QueueMark>();
    const Locked lock(DeviceLock());
    NoteEarlyReads(trace);
  }
  bool IsReadEarly() const { return ReadEarly(tensor_).defined(); }

  const at::Tensor tensor_;
};

class Exposed : public EarlyReads {
 protected:
  Exposed() : EarlyReads(/*exposed=*/true) {}
};

class Large : public EarlyReads {
 protected:
  Large() : EarlyReads(/*exposed=*/false, /*size_bytes=*/128) {}
};

TEST_F(EarlyReads, WhatAPartHasWritten) {
  EXPECT_FALSE(IsReadEarly());
  Note();
  const at::Tensor read = ReadEarly(tensor_);
  ASSERT_TRUE(read.defined() && read.is_cpu());
  EXPECT_EQ(read.const_data_ptr<float>()[1], 5);
  EXPECT_EQ(read.sizes(), at::IntArrayRef({2}));
}

TEST_F(EarlyReads, NotWhatItHasRead) {
  Note(/*written=*/false);
  EXPECT_FALSE(IsReadEarly());
}

TEST_F(EarlyReads, NotWhatWasWrittenByOthers) {
  Note(/*written=*/true, /*is_part=*/false);
  EXPECT_FALSE(IsReadEarly());
}

TEST_F(EarlyReads, NotWhatWasWrittenSince) {
  Note();
  storage()->WasWritten();
  EXPECT_FALSE(IsReadEarly());
  Note();
  EXPECT_TRUE(IsReadEarly());
}

TEST_F(EarlyReads, NotWhatIsAboutToBeWritten) {
  Note();
  Trace later;
  storage()->writer = &later;
  EXPECT_FALSE(IsReadEarly());
  storage()->writer = nullptr;
  EXPECT_TRUE(IsReadEarly());
}

// As a replay does it with what is still in a CUDA graph's place: behind the mark.
TEST_F(EarlyReads, NotWhatHasMoved) {
  Note();
  storage()->content = NewContent(8);
  EXPECT_FALSE(IsReadEarly());
}

TEST_F(EarlyReads, NotWhatOthersMayWriteFromNowOn) {
  Note();
  storage()->Expose();
  EXPECT_FALSE(IsReadEarly());
}

TEST_F(Exposed, IsNotReadEarly) {
  Note();
  EXPECT_FALSE(IsReadEarly());
}

TEST_F(Large, IsNotReadEarly) {
  Note();
  EXPECT_FALSE(IsReadEarly());
}

}  // namespace
}  // namespace torch_lazy::lazy
