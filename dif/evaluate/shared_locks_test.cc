#include "dif/evaluate/shared_locks.h"

#include <gtest/gtest.h>

#include <mutex>

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
