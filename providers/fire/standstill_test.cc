#include "providers/fire/standstill.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "vmm/inert_machine_for_tests.h"

namespace ringside::providers {
namespace {

constexpr GuestVirt kBase0{0xffff'8880'0000'0000}, kBase1{0xffff'8880'0010'0000};

/// Two vCPUs; counts the pauses that last.
class TwoVcpus final : public vmm::InertMachine {
 public:
  vmm::GuestMemory& memory() override { return memory_; }
  unsigned count() const override { return 2; }
  Result<void> pause() override {
    if (dead) return fail(ErrorCode::MachineGone, "dead");
    ++pauses;
    return {};
  }
  Result<void> resume() override {
    --pauses;
    return {};
  }
  Result<Registers> registers(unsigned vcpu) override {
    Registers now;
    now.rip = 0x100 + vcpu;
    now.cr0 = 7;
    (vcpu == 0 ? now.gs_base : now.kernel_gs_base) = (vcpu == 0 ? kBase0 : kBase1).raw();
    return now;
  }

  std::atomic<int> pauses = 0;
  bool dead = false;

 private:
  vmm::GuestMemory memory_;
};

class StandstillTest : public testing::Test {
 protected:
  static KeptVcpu at(GuestVirt base, std::uint64_t rip) {
    KeptVcpu kept{std::nullopt, base, {}};
    kept.registers.rip = rip;
    return kept;
  }
  bool is_readable() {
    pollfd event{standstill_.event_fd(), POLLIN, 0};
    return poll(&event, 1, 0) == 1;
  }
  std::vector<std::uint64_t> instructions() {
    std::vector<std::uint64_t> all;
    auto paused = vmm::PausedMachine::pause(machine_);
    const auto registers = standstill_.registers(*paused);
    for (const Registers& each : *registers) all.push_back(each.rip);
    return all;
  }

  TwoVcpus machine_;
  Standstill standstill_{machine_, 2, nullptr};
};

TEST_F(StandstillTest, AThreadThatPollsLeavesThePauseAndGoesOn) {
  standstill_.ask(1, at(kBase1, 0x777));
  EXPECT_EQ(machine_.pauses, 0) << "not in the turn";
  standstill_.settle(1);

  EXPECT_EQ(machine_.pauses, 1);
  EXPECT_TRUE(is_readable());
  const std::uint64_t asked = standstill_.take_asked();
  EXPECT_NE(asked, 0u);
  EXPECT_FALSE(is_readable());
  EXPECT_EQ(instructions(), (std::vector<std::uint64_t>{0x100, 0x777}));
  standstill_.release(asked);
  EXPECT_EQ(machine_.pauses, 0);
  EXPECT_EQ(standstill_.take_asked(), 0u);
  EXPECT_EQ(instructions(), (std::vector<std::uint64_t>{0x100, 0x101}));
}

TEST_F(StandstillTest, NothingHappensUnlessAFiringAsks) {
  standstill_.settle(0);

  EXPECT_EQ(machine_.pauses, 0);
  EXPECT_FALSE(is_readable());
}

TEST_F(StandstillTest, WhoAsksAgainIsKeptForThat) {
  standstill_.ask(0, at(kBase0, 1));
  standstill_.settle(0);
  const std::uint64_t first = standstill_.take_asked();
  standstill_.ask(1, at(kBase1, 2));
  standstill_.settle(1);

  standstill_.release(first);

  EXPECT_EQ(machine_.pauses, 1) << "the second one's";
  standstill_.release(standstill_.take_asked());
  EXPECT_EQ(machine_.pauses, 0);
}

TEST_F(StandstillTest, ARecordThatWasReadBeforeThePauseNeedsNone) {
  standstill_.ask(0, at(kBase0, 1));
  standstill_.release(standstill_.take_asked());
  standstill_.settle(0);

  EXPECT_EQ(machine_.pauses, 0);
}

TEST_F(StandstillTest, AVcpusOwnThreadWaitsAndPausesNothing) {
  std::atomic<bool> went_on = false;
  std::thread vcpu([&] {
    {
      const Standstill::VcpuThread handling;
      standstill_.ask(0, {0, GuestVirt(0), {}});
      standstill_.settle(0);
    }
    went_on = true;
  });
  pollfd event{standstill_.event_fd(), POLLIN, 0};
  ASSERT_EQ(poll(&event, 1, -1), 1);

  EXPECT_FALSE(went_on);
  EXPECT_EQ(machine_.pauses, 0);
  standstill_.release(standstill_.take_asked());
  vcpu.join();
  EXPECT_TRUE(went_on);
}

TEST_F(StandstillTest, TheEndLetsEverybodyGo) {
  standstill_.ask(0, at(kBase0, 1));
  standstill_.settle(0);

  standstill_.end();
  standstill_.ask(1, at(kBase1, 1));
  standstill_.settle(1);
  {
    const Standstill::VcpuThread handling;
    standstill_.ask(0, at(kBase0, 1));
    standstill_.settle(0);
  }

  EXPECT_EQ(machine_.pauses, 0);
}

TEST_F(StandstillTest, AMachineThatCannotBePausedKeepsNobody) {
  machine_.dead = true;
  standstill_.ask(0, at(kBase0, 1));
  standstill_.settle(0);

  EXPECT_TRUE(is_readable()) << "the session finds out";
  standstill_.release(standstill_.take_asked());
  EXPECT_EQ(machine_.pauses, 0);
}

TEST_F(StandstillTest, RegistersThatATrapDoesNotKeepAreTheVcpusOwn) {
  KeptVcpu kept = at(kBase0, 0x777);
  kept.registers.rsp = 0x888;
  standstill_.ask(0, kept);
  auto paused = vmm::PausedMachine::pause(machine_);

  const auto all = standstill_.registers(*paused);
  const Registers& registers = all->front();

  EXPECT_EQ(registers.rsp, 0x888u);
  EXPECT_EQ(registers.cr0, 7u);
  EXPECT_EQ(registers.gs_base, kBase0.raw());
}

}  // namespace
}  // namespace ringside::providers
