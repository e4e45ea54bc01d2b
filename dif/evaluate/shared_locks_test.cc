#include "dif/evaluate/shared_locks.h"

#include <gtest/gtest.h>

#include <array>
#include <mutex>

#include "dif/evaluate/memory.h"

namespace ringside::dif {
namespace {

bool is_free(BriefLock& lock) {
  const std::unique_lock held(lock, std::try_to_lock);
  return held.owns_lock();
}

TEST(SharedLocks, OneVcpuTakesNone) {
  SharedLocks locks(1);
  SharedAccess access(locks);
  EXPECT_TRUE(access.owns_program());

  access.begin(true);
  access.take_program();
  access.take_shard(3);
  access.take_everything();

  EXPECT_TRUE(is_free(locks.program()));
  EXPECT_EQ(access.gaps(), 0u);
}

TEST(SharedLocks, TheProgramIsHeldFromItsFirstUseToTheEnd) {
  SharedLocks locks(2);
  SharedAccess access(locks);
  access.begin(false);
  EXPECT_FALSE(access.owns_program());
  EXPECT_TRUE(is_free(locks.program()));

  access.take_program();
  access.take_program();
  EXPECT_TRUE(access.owns_program());
  EXPECT_FALSE(is_free(locks.program()));
  access.end();

  EXPECT_FALSE(access.owns_program());
  EXPECT_TRUE(is_free(locks.program()));
}

TEST(SharedLocks, AShardComesAfterAProgramThatIsKnownToBeNeeded) {
  SharedLocks locks(2);
  SharedAccess access(locks);
  access.begin(true);
  EXPECT_TRUE(is_free(locks.program()));

  access.take_shard(3);

  EXPECT_FALSE(is_free(locks.program()));
  access.take_program();
  EXPECT_EQ(access.gaps(), 0u) << "the shard is still held";
  access.end();
  access.begin(false);
  access.take_shard(3);
  EXPECT_TRUE(is_free(locks.program()));
  access.end();
}

TEST(SharedLocks, AShardThatIsGivenBackEarlyIsAGap) {
  SharedLocks locks(2);
  SharedAccess access(locks);
  access.begin(false);
  access.take_shard(3);
  access.take_shard(3);
  EXPECT_EQ(access.gaps(), 0u);

  access.take_shard(4);
  EXPECT_EQ(access.gaps(), 1u) << "another thread's";
  access.take_program();
  EXPECT_EQ(access.gaps(), 2u) << "the program's lock comes before a shard's";
  EXPECT_TRUE(access.owns_program());
  access.take_shard(5);
  access.take_everything();
  EXPECT_EQ(access.gaps(), 2u) << "all are held by now";
  access.end();
  access.begin(false);
  access.take_shard(3);
  access.end();
  EXPECT_EQ(access.gaps(), 2u) << "the end is none";
}

/// Memory that vCPUs share, and the locks that a firing takes for it.
class SharedMemory : public ::testing::Test {
 protected:
  SharedMemory() {
    memory_.set_access(access_);
    memory_.set_arena(Arena::Globals, globals_);
    memory_.set_arena(Arena::Dynamic, dynamic_);
    access_.begin(false);
  }
  ~SharedMemory() override { access_.end(); }
  bool reads(Arena arena, std::uint64_t offset) {
    std::array<std::byte, 8> out;
    return memory_.read_state(make_handle(arena, offset), out).has_value();
  }

  std::array<std::byte, 64> globals_{}, dynamic_{};
  SharedLocks locks_{2};
  SharedAccess access_{locks_};
  Memory memory_{EngineOptions{}};
};

TEST_F(SharedMemory, IsTheFiringsOnceItIsReadOrWritten) {
  EXPECT_TRUE(reads(Arena::Scratch, 0));
  EXPECT_FALSE(access_.owns_program()) << "its own";
  EXPECT_TRUE(reads(Arena::Globals, 56));
  EXPECT_TRUE(access_.owns_program());
  access_.end();
  EXPECT_TRUE(memory_.writable(make_handle(Arena::Globals, 0), 8));
  EXPECT_TRUE(access_.owns_program());
  access_.end();
  memory_.take(make_handle(Arena::Globals, 0));
  EXPECT_TRUE(access_.owns_program());
}

TEST_F(SharedMemory, AnElementIsReadUnderTheLockThatItWasLookedUpUnder) {
  access_.take_shard(1);
  memory_.open(make_handle(Arena::Dynamic, 8), 8);

  EXPECT_TRUE(reads(Arena::Dynamic, 8));
  EXPECT_FALSE(access_.owns_program());
  EXPECT_TRUE(memory_.writable(make_handle(Arena::Dynamic, 8), 8));
  EXPECT_TRUE(reads(Arena::Dynamic, 12)) << "half of it, and what lies behind";
  EXPECT_TRUE(access_.owns_program()) << "which is anybody's";
}

TEST_F(SharedMemory, AnElementWhoseLockWasGivenBackIsNotWritableAnyMore) {
  access_.take_shard(1);
  memory_.open(make_handle(Arena::Dynamic, 8), 8);
  ASSERT_TRUE(memory_.writable(make_handle(Arena::Dynamic, 8), 8));

  access_.take_shard(2);

  EXPECT_FALSE(memory_.writable(make_handle(Arena::Dynamic, 8), 8));
}

/// Would wait for ever for a lock that the first one has kept.
TEST(SharedLocks, WhatOneFiringHeldTheNextOneMayTake) {
  SharedLocks locks(2);
  SharedAccess first(locks), second(locks);
  for (const bool program_first : {false, true}) {
    first.begin(program_first);
    first.take_shard(SharedLocks::kShards - 1);
    first.take_everything();
    first.end();
    second.begin(program_first);
    second.take_everything();
    second.end();
    first.begin(program_first);
    first.take_shard(0);
    first.end();
    second.begin(program_first);
    second.take_everything();
    second.end();
  }
  EXPECT_TRUE(is_free(locks.program()));
}

}  // namespace
}  // namespace ringside::dif
