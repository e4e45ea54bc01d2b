#include "providers/dispatch/firing_pause.h"

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

class FiringPauseTest : public testing::Test {
 protected:
  static FiringVcpu at(GuestVirt base, std::uint64_t rip) {
    FiringVcpu kept{std::nullopt, base, {}};
    kept.registers.rip = rip;
    return kept;
  }
  bool is_readable() {
    pollfd event{firing_pause_.event_fd(), POLLIN, 0};
    return poll(&event, 1, 0) == 1;
  }
  std::vector<std::uint64_t> instructions() {
    std::vector<std::uint64_t> all;
    auto paused = vmm::PausedMachine::pause(machine_);
    const auto registers = firing_pause_.registers(*paused);
    for (const Registers& each : *registers) all.push_back(each.rip);
    return all;
  }

  TwoVcpus machine_;
  FiringPause firing_pause_{machine_, 2, nullptr};
};

TEST_F(FiringPauseTest, AThreadThatPollsLeavesThePauseAndGoesOn) {
  firing_pause_.ask(1, at(kBase1, 0x777));
  EXPECT_EQ(machine_.pauses, 0) << "not under the firing lock";
  firing_pause_.settle(1);

  EXPECT_EQ(machine_.pauses, 1);
  EXPECT_TRUE(is_readable());
  const std::uint64_t asked = firing_pause_.take_asked();
  EXPECT_NE(asked, 0u);
  EXPECT_FALSE(is_readable());
  EXPECT_EQ(instructions(), (std::vector<std::uint64_t>{0x100, 0x777}));
  firing_pause_.release(asked);
  EXPECT_EQ(machine_.pauses, 0);
  EXPECT_EQ(firing_pause_.take_asked(), 0u);
  EXPECT_EQ(instructions(), (std::vector<std::uint64_t>{0x100, 0x101}));
}

TEST_F(FiringPauseTest, NothingHappensUnlessAFiringAsks) {
  firing_pause_.settle(0);

  EXPECT_EQ(machine_.pauses, 0);
  EXPECT_FALSE(is_readable());
}

TEST_F(FiringPauseTest, WhoAsksAgainIsKeptForThat) {
  firing_pause_.ask(0, at(kBase0, 1));
  firing_pause_.settle(0);
  const std::uint64_t first = firing_pause_.take_asked();
  firing_pause_.ask(1, at(kBase1, 2));
  firing_pause_.settle(1);

  firing_pause_.release(first);

  EXPECT_EQ(machine_.pauses, 1) << "the second one's";
  firing_pause_.release(firing_pause_.take_asked());
  EXPECT_EQ(machine_.pauses, 0);
}

TEST_F(FiringPauseTest, ARecordThatWasReadBeforeThePauseNeedsNone) {
  firing_pause_.ask(0, at(kBase0, 1));
  firing_pause_.release(firing_pause_.take_asked());
  firing_pause_.settle(0);

  EXPECT_EQ(machine_.pauses, 0);
}

TEST_F(FiringPauseTest, AVcpusOwnThreadWaitsAndPausesNothing) {
  std::atomic<bool> went_on = false;
  std::thread vcpu([&] {
    {
      const FiringPause::VcpuThread handling;
      firing_pause_.ask(0, {0, GuestVirt(0), {}});
      firing_pause_.settle(0);
    }
    went_on = true;
  });
  pollfd event{firing_pause_.event_fd(), POLLIN, 0};
  ASSERT_EQ(poll(&event, 1, -1), 1);

  EXPECT_FALSE(went_on);
  EXPECT_EQ(machine_.pauses, 0);
  firing_pause_.release(firing_pause_.take_asked());
  vcpu.join();
  EXPECT_TRUE(went_on);
}

TEST_F(FiringPauseTest, TheEndLetsEverybodyGo) {
  firing_pause_.ask(0, at(kBase0, 1));
  firing_pause_.settle(0);

  firing_pause_.end();
  firing_pause_.ask(1, at(kBase1, 1));
  firing_pause_.settle(1);
  {
    const FiringPause::VcpuThread handling;
    firing_pause_.ask(0, at(kBase0, 1));
    firing_pause_.settle(0);
  }

  EXPECT_EQ(machine_.pauses, 0);
}

TEST_F(FiringPauseTest, AMachineThatCannotBePausedKeepsNobody) {
  machine_.dead = true;
  firing_pause_.ask(0, at(kBase0, 1));
  firing_pause_.settle(0);

  EXPECT_TRUE(is_readable()) << "the session finds out";
  firing_pause_.release(firing_pause_.take_asked());
  EXPECT_EQ(machine_.pauses, 0);
}

TEST_F(FiringPauseTest, RegistersThatATrapDoesNotKeepAreTheVcpusOwn) {
  FiringVcpu kept = at(kBase0, 0x777);
  kept.registers.rsp = 0x888;
  firing_pause_.ask(0, kept);
  auto paused = vmm::PausedMachine::pause(machine_);

  const auto all = firing_pause_.registers(*paused);
  const Registers& registers = all->front();

  EXPECT_EQ(registers.rsp, 0x888u);
  EXPECT_EQ(registers.cr0, 7u);
  EXPECT_EQ(registers.gs_base, kBase0.raw());
}

}  // namespace
}  // namespace ringside::providers
