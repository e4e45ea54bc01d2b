#include "providers/dispatch/firing_pause.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <map>
#include <set>
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
    now.cr3 = 0x1000;
    (vcpu == 0 ? now.gs_base : now.kernel_gs_base) = (vcpu == 0 ? kBase0 : kBase1).raw();
    return now;
  }

  std::atomic<int> pauses = 0;
  bool dead = false;

 private:
  vmm::GuestMemory memory_;
};

/// A shim in which the vCPUs of some per-CPU bases wait.
class ShimWithWaiters final : public vmm::Mailboxes {
 public:
  void activate() override {}
  void deactivate() override {}
  unsigned poll_share(const vmm::TrapHandlers&, vmm::PollShare) override { return 0; }
  void set_doorbell(std::uint16_t) override {}
  void answer(std::uint32_t, const vmm::TrapHandlers&) override {}
  void heartbeat() override {}
  bool quiescent() const override { return true; }
  vmm::ShimCounters counters() const override { return {}; }
  bool contains(GuestVirt pc) const override { return inside.contains(pc.raw()); }
  std::optional<Registers> waiting(GuestVirt percpu_base) const override {
    const auto found = traps.find(percpu_base.raw());
    if (found == traps.end()) return std::nullopt;
    Registers at_trap;
    at_trap.rip = found->second;
    return at_trap;
  }
  std::optional<vmm::Displaced> displaced_from(GuestVirt, std::uint64_t) const override {
    return std::nullopt;
  }

  std::set<std::uint64_t> inside;
  std::map<std::uint64_t, std::uint64_t> traps;  // by per-CPU base: where
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
  std::vector<std::uint64_t> instructions() { return instructions(firing_pause_); }
  std::vector<std::uint64_t> instructions(const FiringPause& firing_pause) {
    std::vector<std::uint64_t> all;
    auto paused = vmm::PausedMachine::pause(machine_);
    const auto registers = firing_pause.registers(*paused);
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
  EXPECT_EQ(asked, 1u);
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

TEST_F(FiringPauseTest, ACpuThatTheMachineDoesNotHaveAsksForNothing) {
  firing_pause_.ask(2, at(kBase1, 0x777));
  firing_pause_.settle(2);

  EXPECT_EQ(machine_.pauses, 0);
  EXPECT_FALSE(is_readable());
  firing_pause_.ask(1, at(kBase1, 0x777));
  EXPECT_EQ(firing_pause_.take_asked(), 1u) << "the first one that counts";
}

TEST_F(FiringPauseTest, PausesThatAreLeftAtItsEndAreOver) {
  {
    FiringPause ends(machine_, 2, nullptr);
    ends.ask(1, at(kBase1, 1));
    ends.settle(1);
    EXPECT_EQ(machine_.pauses, 1);
  }
  EXPECT_EQ(machine_.pauses, 0);
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
  std::atomic<bool> released = false;
  bool was_released = false;
  std::thread vcpu([&] {
    EXPECT_FALSE(FiringPause::VcpuThread::is_this());
    {
      const FiringPause::VcpuThread handling;
      EXPECT_TRUE(FiringPause::VcpuThread::is_this());
      firing_pause_.ask(0, {0, GuestVirt(0), {}});
      firing_pause_.settle(0);
    }
    was_released = released;
    EXPECT_FALSE(FiringPause::VcpuThread::is_this());
  });
  pollfd event{firing_pause_.event_fd(), POLLIN, 0};
  ASSERT_EQ(poll(&event, 1, -1), 1);

  EXPECT_EQ(machine_.pauses, 0);
  const std::uint64_t asked = firing_pause_.take_asked();
  firing_pause_.release(0);
  released = true;
  firing_pause_.release(asked);
  vcpu.join();
  EXPECT_TRUE(was_released) << "it goes on then, not before";
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
  const auto registers = [&] {
    firing_pause_.ask(0, kept);
    auto paused = vmm::PausedMachine::pause(machine_);
    return firing_pause_.registers(*paused)->front();
  };

  EXPECT_EQ(registers().rsp, 0x888u);
  EXPECT_EQ(registers().cr0, 7u);
  EXPECT_EQ(registers().gs_base, kBase0.raw());
  EXPECT_EQ(registers().cr3, 0x1000u) << "where the trap did not tell";
  kept.registers.cr3 = 0x2000;
  EXPECT_EQ(registers().cr3, 0x2000u) << "the page tables of the process that fired";
}

TEST_F(FiringPauseTest, TheVcpuThatFiredIsFoundByItsNumberOrItsPerCpuBase) {
  firing_pause_.ask(0, {1, kBase0, at(kBase0, 0x777).registers});
  EXPECT_EQ(instructions(), (std::vector<std::uint64_t>{0x100, 0x777})) << "by its number first";

  firing_pause_.ask(0, at(GuestVirt(0), 0x777));
  EXPECT_EQ(instructions(), (std::vector<std::uint64_t>{0x100, 0x101})) << "0 is nobody's base";
}

TEST_F(FiringPauseTest, AVcpuThatWaitsToFireIsShownAtItsProbe) {
  ShimWithWaiters shim;
  FiringPause with_shim(machine_, 2, &shim);
  shim.traps = {{kBase0.raw(), 0x500}, {kBase1.raw(), 0x501}};
  EXPECT_EQ(instructions(with_shim), (std::vector<std::uint64_t>{0x100, 0x101}))
      << "neither is inside";

  shim.inside = {0x100, 0x101};
  EXPECT_EQ(instructions(with_shim), (std::vector<std::uint64_t>{0x500, 0x501}))
      << "by the base of the kernel, wherever that is";
  shim.traps.erase(kBase1.raw());
  EXPECT_EQ(instructions(with_shim), (std::vector<std::uint64_t>{0x500, 0x101}));
  with_shim.ask(0, at(kBase0, 0x777));
  EXPECT_EQ(instructions(with_shim), (std::vector<std::uint64_t>{0x777, 0x101})) << "it fired";
}

}  // namespace
}  // namespace ringside::providers
