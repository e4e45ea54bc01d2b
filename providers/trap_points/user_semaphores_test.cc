#include "providers/trap_points/user_semaphores.h"

#include <gtest/gtest.h>

#include <map>

#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

constexpr GuestVirt kFile(0xffff888000001000), kOther(0xffff888000002000);
constexpr std::uint64_t kAt = 0x4abc;
/// Frames in the fake machine's RAM.
constexpr GuestPhys kCached(0x200000), kCopy(0x201000), kLater(0x202000);

class Semaphores : public testing::Test {
 protected:
  /// The file's own page and processes' copies of it.
  UserSemaphores::Find finder() {
    return [this](std::span<const guest_linux::FileRange> ranges, UserSemaphores::Copies copies) {
      UserSemaphores::Places places;
      for (std::size_t n = 0; n < ranges.size(); ++n) {
        const std::uint64_t in_page = ranges[n].begin % 0x1000;
        places.push_back({n, kCached.wrapping_add(in_page)});
        if (copies == UserSemaphores::Copies::Left) continue;
        for (const GuestPhys copy : copies_) places.push_back({n, copy.wrapping_add(in_page)});
      }
      return places;
    };
  }
  void raise() {
    ASSERT_TRUE(semaphores_.raise(*paused_, finder(),
                                  [this](GuestVirt, std::uint64_t) { return may_write_; }));
  }
  void lower(UserSemaphores::Which which) {
    ASSERT_TRUE(semaphores_.lower(*paused_, finder(), which));
  }
  std::uint64_t at(GuestPhys frame) {
    std::array<std::byte, 2> bytes{};
    EXPECT_TRUE(machine_.memory().read(frame.wrapping_add(kAt % 0x1000), bytes));
    return std::to_integer<std::uint64_t>(bytes[0]) | std::to_integer<std::uint64_t>(bytes[1]) << 8;
  }
  void put(GuestPhys frame, std::uint64_t value) {
    machine_.put64(frame.raw() + kAt % 0x1000, value);
  }

  trap_point_fakes::FakeMachine machine_;
  Result<vmm::PausedMachine> paused_ = vmm::PausedMachine::pause(machine_);
  std::vector<GuestPhys> copies_{kCopy};
  bool may_write_ = true;
  UserSemaphores semaphores_;
};

TEST_F(Semaphores, AreOneHigherInEachCopyWhileTheyHaveUsers) {
  put(kCopy, 0xff);  // of somebody else, and a carry
  semaphores_.add_user(kFile, kAt);
  semaphores_.add_user(kFile, kAt);
  raise();
  raise();
  EXPECT_EQ(at(kCached), 1u);
  EXPECT_EQ(at(kCopy), 0x100u);

  semaphores_.release(kFile, kAt);
  lower(UserSemaphores::Which::Unused);
  EXPECT_EQ(at(kCached), 1u) << "one user is left";
  semaphores_.release(kFile, kAt);
  lower(UserSemaphores::Which::Unused);
  EXPECT_EQ(at(kCached), 0u);
  EXPECT_EQ(at(kCopy), 0xffu);
}

TEST_F(Semaphores, ACopyThatWasMadeMeanwhileIsLowered) {
  semaphores_.add_user(kFile, kAt);
  raise();
  copies_.push_back(kLater);
  put(kLater, 1);  // as it was copied
  lower(UserSemaphores::Which::All);
  EXPECT_EQ(at(kLater), 0u);
  lower(UserSemaphores::Which::All);
  EXPECT_EQ(at(kCached), 0u) << "once";
}

TEST_F(Semaphores, ACopyThatIsMadeWhileTheyAreLoweredIsLoweredTheNextTime) {
  semaphores_.add_user(kFile, kAt);
  raise();
  lower(UserSemaphores::Which::All);
  copies_.push_back(kLater);
  put(kLater, 1);  // its page had been copied, and now it is mapped
  put(kCopy, 1);   // by somebody else
  put(kCached, 1);
  lower(UserSemaphores::Which::All);
  EXPECT_EQ(at(kLater), 0u);
  EXPECT_EQ(at(kCopy), 1u);
  EXPECT_EQ(at(kCached), 1u);
}

TEST_F(Semaphores, OneThatIsZeroStaysSo) {
  semaphores_.add_user(kFile, kAt);
  raise();
  put(kCopy, 0);
  lower(UserSemaphores::Which::All);
  EXPECT_EQ(at(kCopy), 0u);
}

TEST_F(Semaphores, StepAsideInTheFileAlone) {
  semaphores_.add_user(kFile, kAt);
  raise();
  EXPECT_TRUE(semaphores_.stands_in(kFile, 0x4000, 0x5000));
  EXPECT_FALSE(semaphores_.stands_in(kFile, 0x5000, 0x6000));
  EXPECT_FALSE(semaphores_.stands_in(kOther, 0x4000, 0x5000));
  ASSERT_TRUE(semaphores_.step_aside(*paused_, finder(), kFile, 0x4000, 0x5000));
  EXPECT_EQ(at(kCached), 0u);
  EXPECT_EQ(at(kCopy), 1u);
  EXPECT_FALSE(semaphores_.stands_in(kFile, 0x4000, 0x5000));

  raise();
  EXPECT_EQ(at(kCached), 1u);
  EXPECT_EQ(at(kCopy), 1u) << "it still was";
}

TEST_F(Semaphores, AProcessThatStartedWhileTheyWereAsideGetsThem) {
  semaphores_.add_user(kFile, kAt);
  raise();
  EXPECT_EQ(semaphores_.step_aside(*paused_, finder(), kFile, 0x4000, 0x5000).value(), 1u);
  copies_.push_back(kLater);
  raise();
  EXPECT_EQ(at(kLater), 1u);
  EXPECT_EQ(at(kCopy), 1u);
  lower(UserSemaphores::Which::All);
  EXPECT_EQ(at(kLater), 0u);
}

TEST_F(Semaphores, WhileAsideTheFilesOwnAreNotLowered) {
  semaphores_.add_user(kFile, kAt);
  raise();
  ASSERT_TRUE(semaphores_.step_aside(*paused_, finder(), kFile, 0x4000, 0x5000));
  put(kCached, 7);  // somebody has written to the file
  lower(UserSemaphores::Which::All);
  EXPECT_EQ(at(kCached), 7u);
  EXPECT_EQ(at(kCopy), 0u);
}

TEST_F(Semaphores, ThatCouldLieInTwoPagesAreNotTakenOver) {
  semaphores_.take_over(kFile, 0x4fff);
  EXPECT_FALSE(semaphores_.stands_in(kFile, 0, 0x6000));
}

TEST_F(Semaphores, WaitUntilTheFileMayBeWritten) {
  const auto may_write = [this](GuestVirt, std::uint64_t) { return may_write_; };
  may_write_ = false;
  semaphores_.add_user(kFile, kAt);
  raise();
  EXPECT_EQ(at(kCached), 0u);
  EXPECT_FALSE(semaphores_.wants_raising(may_write));
  may_write_ = true;
  EXPECT_TRUE(semaphores_.wants_raising(may_write));
  raise();
  EXPECT_EQ(at(kCached), 1u);
  EXPECT_FALSE(semaphores_.wants_raising(may_write));
}

TEST_F(Semaphores, AreRaisedAgainInAPageThatWasReadAnew) {
  semaphores_.add_user(kFile, kAt);
  raise();
  put(kCached, 0);
  semaphores_.note_missing(machine_.memory(), finder());
  raise();
  EXPECT_EQ(at(kCached), 1u);
  EXPECT_EQ(at(kCopy), 1u);
}

TEST_F(Semaphores, OfAnEarlierTracerAreLowered) {
  put(kCached, 1);
  put(kCopy, 1);
  semaphores_.take_over(kFile, kAt);
  EXPECT_TRUE(semaphores_.stands_in(kFile, 0x4000, 0x5000));
  lower(UserSemaphores::Which::All);
  EXPECT_EQ(at(kCached), 0u);
  EXPECT_EQ(at(kCopy), 0u);
  EXPECT_FALSE(semaphores_.stands_in(kFile, 0x4000, 0x5000));
}

}  // namespace
}  // namespace ringside::providers
