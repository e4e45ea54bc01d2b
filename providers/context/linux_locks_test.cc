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
    return lock_of_linux(memory_, which, GuestVirt(kLock)).value_or(0xdead);
  }

  dif::testing::FakeMemory memory_;
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

TEST_F(LinuxLock, OneThatIsNotThereFaultsWhereItShouldBe) {
  for (const LockFact which : {LockFact::Owner, LockFact::Adaptive, LockFact::Spins,
                               LockFact::ReadHeld, LockFact::WriteHeld, LockFact::HasWriter}) {
    const auto answer = lock_of_linux(memory_, which, GuestVirt(kLock));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, FaultKind::BadAddress);
    EXPECT_EQ(answer.error().address, kLock);
  }
}

}  // namespace
}  // namespace ringside::providers
