// The exit channel from the ring to the answer, over the real shim's host end; the test plays the
// guest in plain memory, and vCPUs' threads.
#include "providers/fire/exit_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "providers/fake_guest.h"
#include "providers/fire/dispatch.h"
#include "providers/fire/sampler.h"
#include "vmm/fake_vcpu_exits_for_tests.h"
#include "vmm/shim/installed_shim.h"
#include "vmm/shim/plain_region_for_tests.h"

namespace ringside::providers {
namespace {

constexpr GuestVirt kPlace{0xffff'ffff'8100'0000};
constexpr std::uint32_t kProbe = 100;

class Breakpoints final : public BreakpointSink {
 public:
  void on_breakpoint(vmm::StoppedVcpu&, GuestVirt address) override { seen.push_back(address); }
  std::vector<GuestVirt> seen;
};

class Events final : public VcpuEventSink {
 public:
  bool wants(const vmm::VcpuEvent& event) const override { return event.kind == wanted; }
  void on_event(vmm::StoppedVcpu&, const vmm::VcpuEvent&) override { ++seen; }
  vmm::VcpuEvent::Kind wanted = vmm::VcpuEvent::Kind::PortOut;
  unsigned seen = 0;
};

class Exits : public ::testing::Test {
 protected:
  static constexpr unsigned kVcpus = 2;

  Exits()
      : shim_(region_.memory(), region_.layout(), GuestVirt(0xffff'ffff'9f00'0000), 2,
              vmm::PlainRegion::gate()) {
    FakeKernel::write_task(memory_);
    EXPECT_TRUE(shim_.add_entry(kPlace, *shim_.allocate_slot(8)));
    dispatcher_.open();
  }
  const shim_control& control() { return region_.control(); }
  void raise(unsigned i) {
    region_.head(i).percpu = kKernelBase + (i == 0 ? kPercpu0 : kPercpu1);
    region_.head(i).cr3 = kRoot;
    region_.raise(i, kPlace);
  }
  bool is_answered(unsigned i) { return region_.is_answered(i); }
  void open() {
    auto paused = vmm::PausedMachine::pause(machine_);
    ASSERT_TRUE(paused);
    channel_.open(*paused);
  }

  vmm::PlainRegion region_;
  vmm::InstalledShim shim_;
  FakeMemory memory_;
  FakeKernel kernel_;
  FakeMachine machine_{memory_};
  RecordingSink sink_;
  GuestClock clock_{TickRate(1'000'000'000)};
  LinuxContexts contexts_{kVcpus, memory_.memory(), kernel_};
  TrapDispatcher dispatcher_{kernel_, contexts_, sink_, clock_, {.added = {{kPlace, {{kProbe}}}}}};
  vmm::FakeVcpuExits exits_;
  ExitChannel channel_{exits_, {.traps = ShimTraps{shim_, dispatcher_}}};
  vmm::FakeStoppedVcpu vcpu_;
};

TEST_F(Exits, ARingFiresAndAnswersOnTheVcpusThread) {
  raise(1);

  channel_.on_doorbell(vcpu_, 1);

  EXPECT_TRUE(is_answered(1));
  ASSERT_EQ(sink_.firings.size(), 1u);
  EXPECT_EQ(sink_.firings[0].probe.value, kProbe);
  EXPECT_EQ(sink_.firings[0].record.vcpu, 1u) << "the mailbox says which CPU";
  EXPECT_EQ(sink_.firings[0].execname, "workload");
  EXPECT_EQ(vcpu_.fetched, 0u) << "all that is needed lies in the mailbox";
}

TEST_F(Exits, RingsOfAnyValueDoNoHarm) {
  raise(0);

  for (const std::uint32_t lie : {1u, 63u, 64u, 0x5244u, UINT32_MAX}) {
    channel_.on_doorbell(vcpu_, lie);
  }

  EXPECT_TRUE(sink_.firings.empty());
  EXPECT_FALSE(is_answered(0));
}

TEST_F(Exits, TheGuestIsToldWhereToRingWhileTheChannelIsOpen) {
  EXPECT_EQ(control().doorbell, 0u);
  open();
  EXPECT_EQ(control().doorbell, vmm::VcpuExits::kDoorbellPort);
  EXPECT_EQ(exits_.sink, &channel_);

  auto paused = vmm::PausedMachine::pause(machine_);
  channel_.close(*paused);

  EXPECT_EQ(control().doorbell, 0u);
  EXPECT_EQ(exits_.sink, nullptr);
}

TEST_F(Exits, BreakpointsAndEventsGoWhereTheyAreWanted) {
  Breakpoints breakpoints;
  Events events;
  channel_.on_breakpoint(vcpu_, kPlace);
  channel_.on_event(vcpu_, {});
  ExitChannel channel(exits_, {.breakpoints = &breakpoints, .events = &events});

  channel.on_breakpoint(vcpu_, kPlace);
  channel.on_event(vcpu_, {.kind = vmm::VcpuEvent::Kind::PortOut});
  channel.on_doorbell(vcpu_, 1);

  EXPECT_EQ(breakpoints.seen, std::vector<GuestVirt>{kPlace});
  EXPECT_EQ(events.seen, 1u);
}

TEST_F(Exits, AnEventThatNobodyWantsIsNotToldOf) {
  Events events;
  ExitChannel channel(exits_, {.events = &events});

  channel.on_event(vcpu_, {.kind = vmm::VcpuEvent::Kind::PortIn});

  EXPECT_EQ(events.seen, 0u);
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
  ThreadedMachine machine(memory_);
  VcpuContexts sample_contexts(memory_.memory(), kVcpus, std::nullopt);
  VcpuSampler sampler(machine, sample_contexts, sink_, clock_, &shim_, nullptr);
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < kVcpus; ++index) {
    threads.emplace_back([&, index] {
      vmm::FakeStoppedVcpu self(index);
      for (unsigned n = 0; n < kTraps; ++n) {
        machine.enter();
        raise(index);
        machine.leave();
        channel_.on_doorbell(self, index);
        while (!is_answered(index)) std::this_thread::yield();  // the fire thread serves it
      }
    });
  }
  for (unsigned n = 0; n < kSamples; ++n) {
    sampler.sample({.probe = {1}, .kind = TimerKind::Profile}, 0);
    shim_.poll(dispatcher_);
    shim_.heartbeat();
  }
  for (std::thread& thread : threads) thread.join();

  const std::vector<std::uint32_t> ids = sink_.ids();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kProbe), kVcpus * kTraps) << "each once";
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1u), kVcpus * kSamples);
}

}  // namespace
}  // namespace ringside::providers
