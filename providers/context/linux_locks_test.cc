#include "providers/context/linux_locks.h"

#include <gtest/gtest.h>

#include "dif/testing/fake_guest.h"

namespace ringside::providers {
namespace {

using dif::LockFact;

constexpr std::uint64_t kLock = 0xffff'8880'0000'1100, kOwnerTask = 0xffff'8880'0000'1000;

class LinuxLock : public ::testing::Test {
 protected:
  std::uint64_t ask(LockFact which, std::uint64_t word) {
    memory_.put_value(kLock, word);
    return locks_.fact(memory_, which, GuestVirt(kLock)).value_or(0xdead);
  }

  dif::testing::FakeMemory memory_;
  LinuxLocks locks_;
};

TEST_F(LinuxLock, AMutexNamesItsOwnerWithoutTheFlags) {
  EXPECT_EQ(ask(LockFact::Owner, kOwnerTask | 5), kOwnerTask);
  EXPECT_EQ(ask(LockFact::Owner, 0), 0u);
  EXPECT_EQ(ask(LockFact::Adaptive, 0), 1u);
  EXPECT_EQ(ask(LockFact::Spins, 0), 0u);
}

TEST_F(LinuxLock, AReaderWriterSemaphoreSaysWhoHoldsIt) {
  const auto expect = [&](std::uint64_t count, unsigned read, unsigned write, unsigned writer) {
    EXPECT_EQ(ask(LockFact::ReadHeld, count), read) << count;
    EXPECT_EQ(ask(LockFact::WriteHeld, count), write) << count;
    EXPECT_EQ(ask(LockFact::HasWriter, count), writer) << count;
  };
  expect(0, 0, 0, 0);
  expect(1, 0, 1, 1);
  expect(3 << 8, 1, 0, 0);
  expect(3 << 8 | 2, 1, 0, 1);
}

/// Of a real-time kernel, whose types say where.
class RealTimeLock : public ::testing::Test {
 protected:
  RealTimeLock() {
    TypeGraph types;
    const TypeId word = types.add({.kind = TypeKind::Integer, .name = "unsigned long", .size = 8});
    const TypeId half = types.add({.kind = TypeKind::Integer, .name = "int", .size = 4});
    const Member base[] = {{"owner", word, kOwnerAt * 8, 0}};
    const TypeId rt_mutex = types.add_struct(TypeKind::Struct, "rt_mutex_base", 32, base);
    const Member mutex[] = {{"rtmutex", rt_mutex, 0, 0}};
    types.index(types.add_struct(TypeKind::Struct, "mutex", 32, mutex));
    const Member rwbase[] = {{"readers", half, kReadersAt * 8, 0}};
    const TypeId rw = types.add_struct(TypeKind::Struct, "rwbase_rt", 40, rwbase);
    const Member semaphore[] = {{"rwbase", rw, 0, 0}};
    types.index(types.add_struct(TypeKind::Struct, "rw_semaphore", 40, semaphore));
    locks_ = LinuxLocks(types);
    memory_.put_value(kLock, UINT64_MAX);  // its spin lock, which says nothing
  }
  std::uint64_t ask(LockFact which) {
    return locks_.fact(memory_, which, GuestVirt(kLock)).value_or(0xdead);
  }

  static constexpr std::uint64_t kOwnerAt = 24, kReadersAt = 8;
  dif::testing::FakeMemory memory_;
  LinuxLocks locks_;
};

TEST_F(RealTimeLock, AMutexHasItsOwnerWhereTheTypesSay) {
  memory_.put_value(kLock + kOwnerAt, kOwnerTask | 1);
  EXPECT_EQ(ask(LockFact::Owner), kOwnerTask);
  memory_.put_value(kLock + kOwnerAt, std::uint64_t{0});
  EXPECT_EQ(ask(LockFact::Owner), 0u);
  memory_.put_value(kLock + kReadersAt, std::uint32_t{0});
  EXPECT_EQ(ask(LockFact::Adaptive), 1u);
  EXPECT_EQ(ask(LockFact::Spins), 0u);
}

TEST_F(RealTimeLock, ASemaphoreSaysWhoHoldsIt) {
  const auto expect = [&](std::uint32_t readers, unsigned read, unsigned write, unsigned writer) {
    memory_.put_value(kLock + kReadersAt, readers);
    EXPECT_EQ(ask(LockFact::ReadHeld), read) << readers;
    EXPECT_EQ(ask(LockFact::WriteHeld), write) << readers;
    EXPECT_EQ(ask(LockFact::HasWriter), writer) << readers;
  };
  expect(1U << 31, 0, 0, 0);        // free
  expect((1U << 31) + 3, 1, 0, 0);  // three readers
  expect(2, 1, 0, 1);               // two that a writer waits for
  expect(1U << 30, 0, 1, 1);        // a writer
}

TEST_F(LinuxLock, OneThatIsNotThereFaultsWhereItShouldBe) {
  for (const LockFact which : {LockFact::Owner, LockFact::Adaptive, LockFact::Spins,
                               LockFact::ReadHeld, LockFact::WriteHeld, LockFact::HasWriter}) {
    const auto answer = locks_.fact(memory_, which, GuestVirt(kLock));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, FaultKind::BadAddress);
    EXPECT_EQ(answer.error().address, kLock);
  }
}

}  // namespace
}  // namespace ringside::providers
