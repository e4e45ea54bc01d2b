// The exit channel from the ring to the answer, over the real shim's host end; the test plays the
// guest in plain memory, and vCPUs' threads.
#include "providers/fire/exit_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "providers/profile/sampler.h"
#include "providers/testing/ringing_guest_for_tests.h"
#include "providers/vm/vm_provider.h"

namespace ringside::providers {
namespace {

constexpr GuestVirt kPlace = RingingGuest::kPlace;
constexpr std::uint32_t kProbe = 100;

constexpr std::uint32_t kPortProbe = 101;

class Exits : public ::testing::Test {
 protected:
  static constexpr unsigned kVcpus = RingingGuest::kVcpus;

  const auto& control() { return guest_.region.control(); }
  bool is_answered(unsigned vcpu) { return guest_.region.is_answered(vcpu); }
  void open() {
    auto paused = vmm::PausedMachine::pause(machine_);
    ASSERT_TRUE(paused);
    guest_.channel.open(*paused);
  }

  RecordingSink sink_;
  RingingGuest guest_{sink_, {kProbe}};
  FakeMachine machine_{guest_.memory};
  vmm::FakeStoppedVcpu vcpu_;
  /// Ports that are written to fire kPortProbe.
  VcpuContexts event_contexts_{guest_.memory.memory(), kVcpus, std::nullopt};
  VmDispatcher events_{event_contexts_, sink_, guest_.clock, VmProvider::plans(), just_ports()};

 private:
  static EventTable just_ports() {
    EventTable table;
    table.by_kind[static_cast<std::size_t>(vmm::VcpuEvent::Kind::PortOut)] = {kPortProbe};
    return table;
  }
};

TEST_F(Exits, ARingFiresAndAnswersOnTheVcpusThread) {
  guest_.raise(1);

  guest_.channel.on_doorbell(vcpu_, 1);

  EXPECT_TRUE(is_answered(1));
  ASSERT_EQ(sink_.firings.size(), 1u);
  EXPECT_EQ(sink_.firings[0].probe.value, kProbe);
  EXPECT_EQ(sink_.firings[0].record.vcpu, 1u) << "the mailbox says which CPU";
  EXPECT_EQ(sink_.firings[0].execname, "workload");
  EXPECT_EQ(vcpu_.fetched, 0u) << "all that is needed lies in the mailbox";
}

TEST_F(Exits, RingsOfAnyValueDoNoHarm) {
  guest_.raise(0);

  for (const std::uint32_t lie : {1u, 63u, 64u, 0x5244u, UINT32_MAX}) {
    guest_.channel.on_doorbell(vcpu_, lie);
  }

  EXPECT_TRUE(sink_.firings.empty());
  EXPECT_FALSE(is_answered(0));
}

TEST_F(Exits, TheGuestIsToldWhereToRingWhileTheChannelIsOpen) {
  EXPECT_EQ(control().doorbell, 0u);
  open();
  EXPECT_EQ(control().doorbell, vmm::VcpuExits::kDoorbellPort);
  EXPECT_EQ(guest_.exits.sink, &guest_.channel);

  auto paused = vmm::PausedMachine::pause(machine_);
  guest_.channel.close(*paused);

  EXPECT_EQ(control().doorbell, 0u);
  EXPECT_EQ(guest_.exits.sink, nullptr);
}

TEST_F(Exits, BreakpointsAndEventsGoWhereTheyAreWanted) {
  std::vector<GuestVirt> breakpoints;
  guest_.channel.on_breakpoint(vcpu_, kPlace);
  guest_.channel.on_event(vcpu_, {});
  ExitChannel channel(
      guest_.exits,
      {.breakpoints = [&](auto&, GuestVirt at) { breakpoints.push_back(at); }, .events = &events_});
  events_.open();

  channel.on_breakpoint(vcpu_, kPlace);
  channel.on_event(vcpu_, {.kind = vmm::VcpuEvent::Kind::PortOut});
  channel.on_doorbell(vcpu_, 1);

  EXPECT_EQ(breakpoints, std::vector<GuestVirt>{kPlace});
  EXPECT_EQ(sink_.ids(), std::vector<std::uint32_t>{kPortProbe});
}

TEST_F(Exits, AnEventThatNoProbeWantsFetchesNothingOfItsVcpu) {
  ExitChannel channel(guest_.exits, {.events = &events_});
  events_.open();

  channel.on_event(vcpu_, {.kind = vmm::VcpuEvent::Kind::PortIn});

  EXPECT_TRUE(sink_.ids().empty());
  EXPECT_EQ(vcpu_.fetched, 0u);
}

/// A machine whose vCPUs are threads of the test. As our own VMM's, a vCPU counts as paused while
/// it is outside the guest, whatever it does there, and a pause waits for those inside.
class ThreadedMachine final : public vmm::InertMachine {
 public:
  explicit ThreadedMachine(FakeMemory& memory) : memory_(memory) {}
  unsigned count() const override { return 2; }
  vmm::GuestMemory& memory() override { return memory_.memory(); }

  void enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pauses_ == 0; });
    ++inside_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --inside_;
    changed_.notify_all();
  }

 protected:
  Result<void> pause() override {
    std::unique_lock lock(mutex_);
    ++pauses_;
    changed_.wait(lock, [this] { return inside_ == 0; });
    return {};
  }
  Result<void> resume() override {
    const std::lock_guard lock(mutex_);
    --pauses_;
    changed_.notify_all();
    return {};
  }

 private:
  FakeMemory& memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned inside_ = 0, pauses_ = 0;
};

TEST_F(Exits, TwoVcpusRingWhileTheFireThreadStopsTheMachineAgainAndAgain) {
  constexpr unsigned kTraps = 2000, kSamples = 300;
  ThreadedMachine machine(guest_.memory);
  VcpuContexts sample_contexts(guest_.memory.memory(), kVcpus, std::nullopt);
  VcpuSampler sampler(machine, sample_contexts, sink_, guest_.clock, &guest_.shim, nullptr);
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < kVcpus; ++index) {
    threads.emplace_back([&, index] {
      vmm::FakeStoppedVcpu self(index);
      for (unsigned n = 0; n < kTraps; ++n) {
        machine.enter();
        guest_.raise(index);
        machine.leave();
        guest_.channel.on_doorbell(self, index);
        while (!is_answered(index)) std::this_thread::yield();  // the fire thread serves it
      }
    });
  }
  for (unsigned n = 0; n < kSamples; ++n) {
    sampler.sample({.probe = {1}, .kind = TimerKind::Profile}, 0);
    guest_.shim.poll(guest_.handlers);
    guest_.shim.heartbeat();
  }
  for (std::thread& thread : threads) thread.join();

  const std::vector<std::uint32_t> ids = sink_.ids();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kProbe), kVcpus * kTraps) << "each once";
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1u), kVcpus * kSamples);
}

}  // namespace
}  // namespace ringside::providers
