#include "providers/fire/fire_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "providers/clock/host_clock.h"
#include "providers/dispatch/dispatch.h"
#include "providers/profile/sampler.h"
#include "providers/testing/fake_guest.h"
#include "providers/testing/loop_for_tests.h"
#include "vmm/fake_vcpu_exits_for_tests.h"

namespace ringside::providers {
namespace {

constexpr ArgumentPlan kPcs = arguments_from(
    {ArgumentSource::kernel_pc(), ArgumentSource::user_pc(), ArgumentSource::fact(0)});
EnabledTimer profile(std::uint32_t probe) {
  return {dif::ProbeId{probe}, TimerKind::Profile, kShortestInterval, &kPcs};
}
const EnabledTimer kProfile = profile(9);

class Loop : public ::testing::Test {
 protected:
  Loop() { FakeKernel::write_task(memory_); }
  FireLoopParts parts() {
    return {.sink = sink_, .clock = clock_, .begin = dif::ProbeId{1}, .end = dif::ProbeId{2}};
  }
  FireLoopParts parts_with_timers(std::vector<EnabledTimer> timers) {
    FireLoopParts made = parts();
    made.timers = std::move(timers);
    return made;
  }
  FireLoopParts parts_with_guest() {
    FireLoopParts made = parts();
    made.traps.emplace(ShimTraps{shim_, handlers_});
    made.gates = {&dispatcher_};
    made.sampler = &sampler_;
    return made;
  }
  static constexpr std::uint32_t kEntry = 100;

  FakeMemory memory_;
  FakeKernel kernel_;
  FakeMachine machine_{memory_};
  FakeShim shim_;
  RecordingSink sink_;
  GuestClock clock_{TickRate(1'000'000'000)};
  LinuxContexts contexts_{2, memory_.memory(), kernel_};
  TrapDispatcher dispatcher_{
      kernel_, contexts_, sink_, clock_, {.added = {{GuestVirt(0x1000), {{kEntry}}}}}};
  vmm::TrapHandlers handlers_{dispatcher_};
  VcpuContexts sample_contexts_{memory_.memory(), 2, LinuxGuest{kernel_, contexts_}};
  VcpuSampler sampler_{machine_, sample_contexts_, sink_, clock_, &shim_, nullptr};
};

TEST(HostContext, CurrentIsTheGuestsFirstThreadAndTheRestTheTracersOwn) {
  const HostContext host(nullptr, GuestVirt(0x1234));

  EXPECT_EQ(host.variable(dif::ContextVariable::Curthread), 0x1234u);
  EXPECT_EQ(host.variable(dif::ContextVariable::Pid), static_cast<std::uint64_t>(::getpid()));
}

TEST(HostContext, OfATimersArgumentsHasWhatNoCpuIsNeededFor) {
  HostContext host(nullptr, GuestVirt(0));

  host.begin(kPcs, {17});
  EXPECT_EQ(host.argument(0), 0u);
  EXPECT_EQ(host.argument(1), 0u);
  EXPECT_EQ(host.argument(2), 17u);
  host.begin(kNoArguments, {});
  EXPECT_EQ(host.argument(2), 0u);
}

TEST(HostContext, CurrentDescendsFromItselfAndFromAllBeforeIt) {
  const HostContext host(nullptr, GuestVirt(0));

  EXPECT_EQ(host.progeny_of(::getpid()), true);
  EXPECT_EQ(host.progeny_of(::getppid()), true);
  EXPECT_EQ(host.progeny_of(-1), false);
  EXPECT_EQ(host.progeny_of(std::int64_t{1} << 40), false);
}

TEST_F(Loop, BeginFiresFirstAndEndLast) {
  FireLoop loop(parts_with_timers({tick(7)}));

  loop.start();
  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{1}));
  loop.open_timers();
  ASSERT_TRUE(eventually([&] { return sink_.fired >= 2; }));
  loop.close();
  loop.finish();

  ASSERT_GE(sink_.firings.size(), 3u) << "at least one tick";
  EXPECT_EQ(sink_.ids()[1], 7u);
  EXPECT_EQ(sink_.ids().back(), 2u);
  for (std::size_t n = 1; n < sink_.firings.size(); ++n) {
    EXPECT_LE(sink_.firings[n - 1].record.timestamp, sink_.firings[n].record.timestamp);
  }
}

TEST_F(Loop, DestroyingARunningLoopStillFiresEnd) {
  {
    FireLoop loop(parts());
    loop.start();
  }

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{1, 2}));
}

TEST_F(Loop, TimersComeAndGoWhileAnotherFires) {
  FireLoop loop(parts_with_timers({tick(7)}));
  loop.start();
  loop.open_timers();
  const std::vector both{tick(7), tick(8)};
  std::size_t added = 0;
  for (unsigned n = 0; n < 50; ++n) {
    loop.set_timers(both);
    if (n % 10 == 0) {
      ASSERT_TRUE(eventually([&] { return sink_.fired_of({8}) > added; })) << "round " << n;
    }
    loop.set_timers(std::vector{tick(7)});
    added = sink_.fired_of({8});
    const std::size_t steady = sink_.fired_of({7});
    ASSERT_TRUE(eventually([&] { return sink_.fired_of({7}) > steady; })) << "round " << n;
    ASSERT_EQ(sink_.fired_of({8}), added) << "round " << n;
  }
  loop.set_timers({});
  const unsigned fired = sink_.fired;
  loop.close();
  loop.finish();

  EXPECT_EQ(sink_.fired, fired + 1) << "END alone";
}

TEST_F(Loop, TimersThatComeBeforeTheBeginningFireFromItOn) {
  FireLoop loop(parts_with_timers({}));
  loop.start();
  loop.set_timers(std::vector{tick(7)});
  EXPECT_EQ(sink_.ids(), std::vector<std::uint32_t>{1});

  loop.open_timers();

  EXPECT_TRUE(eventually([&] { return sink_.fired_of({7}) > 0; }));
}

TEST_F(Loop, EndFiresIfItIsEnabledInTheEnd) {
  {
    FireLoop loop(parts());
    loop.start();
    loop.set_end({});
  }
  EXPECT_EQ(sink_.ids(), std::vector<std::uint32_t>{1});
  {
    FireLoop loop(parts());
    loop.start();
    loop.set_end({});
    loop.set_end(dif::ProbeId{2});
  }
  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{1, 1, 2}));
}

TEST_F(Loop, TrapsFireBetweenOpenAndCloseOnly) {
  FireLoop loop(parts_with_guest());
  shim_.raise = true;
  loop.start();
  ASSERT_TRUE(eventually([&] { return shim_.polled > 10; }));
  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{1})) << "answered, but not fired";

  loop.open_traps();
  EXPECT_TRUE(shim_.active);
  const unsigned opened = shim_.polled;
  ASSERT_TRUE(eventually([&] { return shim_.polled > opened + 10; }));
  loop.close();
  EXPECT_FALSE(shim_.active);
  const std::size_t fired = sink_.firings.size();
  const unsigned closed = shim_.polled;
  ASSERT_TRUE(eventually([&] { return shim_.polled > closed + 10; }));
  shim_.raise = false;
  loop.finish();

  EXPECT_GT(fired, 10u);
  EXPECT_EQ(sink_.firings.size(), fired);
  EXPECT_EQ(sink_.ids().back(), 2u);
  EXPECT_EQ(sink_.ids()[1], kEntry);
  EXPECT_GT(shim_.beats, 0u);
}

TEST_F(Loop, OnceItIsShutOnlyEndFires) {
  FireLoop loop(parts_with_guest());
  loop.start();
  shim_.raise = true;
  loop.open_traps();
  loop.open_timers();
  ASSERT_TRUE(eventually([&] { return sink_.fired > 10; }));

  loop.shut();
  const unsigned fired = sink_.fired;
  const unsigned polled = shim_.polled;
  ASSERT_TRUE(eventually([&] { return shim_.polled > polled + 10; }));
  EXPECT_EQ(sink_.fired, fired);
  EXPECT_NE(sink_.ids().back(), 2u) << "not yet";
  loop.close();
  shim_.raise = false;
  loop.finish();

  EXPECT_EQ(sink_.fired, fired + 1);
  EXPECT_EQ(sink_.ids().back(), 2u);
}

TEST_F(Loop, SeveralThreadsPollUntilTracingEnds) {
  FireLoopParts made = parts_with_guest();
  made.poll_threads = 3;
  FireLoop loop(std::move(made));
  loop.start();
  shim_.raise = true;

  loop.open_traps();
  ASSERT_TRUE(eventually([&] { return shim_.shares == 0b111; }));
  const unsigned opened = sink_.fired;
  ASSERT_TRUE(eventually([&] { return sink_.fired > opened + 100; }));
  loop.close();
  const unsigned fired = sink_.fired;
  const unsigned closed = shim_.polled;
  ASSERT_TRUE(eventually([&] { return shim_.polled > closed + 10; }));
  shim_.raise = false;
  loop.finish();

  EXPECT_EQ(sink_.fired, fired) << "END was the last one";
  EXPECT_EQ(sink_.ids().back(), 2u);
}

TEST_F(Loop, WhereTrapsRingOneThreadIsEnough) {
  FireLoopParts made = parts_with_guest();
  made.traps_ring = true;
  made.poll_threads = 3;
  FireLoop loop(std::move(made));
  loop.start();
  loop.open_traps();

  ASSERT_TRUE(eventually([&] { return shim_.beats > 2; }));
  loop.close();
  loop.finish();

  EXPECT_EQ(shim_.shares, 1u);
}

TEST_F(Loop, FinishGivesUpOnAGuestThatNeverGetsQuiet) {
  FireLoop loop(parts_with_guest());
  loop.start();
  shim_.raise = true;
  loop.close();

  const unsigned closed = shim_.polled;
  loop.finish();

  EXPECT_GT(shim_.polled, closed) << "late traps are answered for a while";
  EXPECT_EQ(sink_.ids().back(), 2u);
}

TEST_F(Loop, ASampleIsLeftOutWhileTheMachineHasItsShareOfTime) {
  sampler_.pace().limit(1);
  const std::uint64_t now = monotonic_ns();
  sampler_.pace().ended(now - 1'000'000'000, now);

  sampler_.sample(kProfile, 0);

  EXPECT_TRUE(sink_.firings.empty());
  EXPECT_EQ(sampler_.pace().left_out(), 1u);
}

TEST_F(Loop, AProfileTimerSamplesEveryVcpuWhileTheMachineStands) {
  machine_.vcpus[0].rip = FakeShim::kInShim;
  machine_.vcpus[0].gs_base = kKernelBase + kPercpu1;  // vCPU 0 runs as CPU 1
  machine_.vcpus[1].rip = 0x7777;
  machine_.vcpus[1].cs = 0x33;
  machine_.vcpus[1].kernel_gs_base = kKernelBase + kPercpu0;

  sampler_.sample(kProfile, 17);

  ASSERT_EQ(sink_.firings.size(), 2u);
  EXPECT_EQ(sink_.firings[0].record.vcpu, 1u);
  EXPECT_EQ(sink_.firings[0].arg0, 0x4242u) << "where it was interrupted, not inside the shim";
  EXPECT_EQ(sink_.firings[1].record.vcpu, 0u);
  EXPECT_EQ(sink_.firings[1].arg0, 0u);
  EXPECT_EQ(sink_.firings[1].arg1, 0x7777u);
  EXPECT_EQ(sink_.firings[1].execname, "workload");
  EXPECT_EQ(machine_.pauses, 1u);
  EXPECT_FALSE(machine_.paused);
}

TEST_F(Loop, AKickedVcpuAnswersForAllThatItMissedButForEachProbeOnce) {
  vmm::FakeVcpuExits exits;
  vmm::FakeStoppedVcpu vcpu(1);
  vcpu.state.rip = 0x7777;
  VcpuSampler sampler(machine_, sample_contexts_, sink_, clock_, &shim_, &exits);
  sampler.sample(kProfile, 17);
  sampler.on_sample(vcpu, exits.sampled);
  EXPECT_TRUE(sink_.firings.empty()) << "not open";
  sampler.open();

  sampler.sample(kProfile, 17);
  sampler.sample(profile(8), 17);
  sampler.sample(kProfile, 17);
  sampler.on_sample(vcpu, exits.sampled);
  sampler.on_sample(vcpu, exits.sampled);
  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{8, 9}));
  EXPECT_EQ(sink_.firings[0].arg0, 0x7777u);
  EXPECT_EQ(machine_.pauses, 0u);

  for (std::uint32_t n = 0; n < 100; ++n) sampler.sample(profile(n), 0);
  sampler.on_sample(vcpu, exits.sampled);
  EXPECT_EQ(sink_.firings.size(), 2u + 16u) << "older ones are forgotten";
  vmm::FakeStoppedVcpu beyond(2);
  sampler.on_sample(beyond, exits.sampled);
  sampler.on_sample(vcpu, exits.sampled + 1);
  EXPECT_EQ(sink_.firings.size(), 18u);
}

TEST_F(Loop, AProbeThatIsForgottenFiresForNoSampleThatWasAskedBefore) {
  vmm::FakeVcpuExits exits;
  vmm::FakeStoppedVcpu vcpu(1);
  VcpuSampler sampler(machine_, sample_contexts_, sink_, clock_, &shim_, &exits);
  sampler.open();
  sampler.sample(kProfile, 0);
  sampler.sample(profile(8), 0);

  sampler.forget(std::vector{kProfile.probe});
  sampler.on_sample(vcpu, exits.sampled);
  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{8}));

  sampler.sample(kProfile, 0);
  sampler.on_sample(vcpu, exits.sampled);
  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{8, 9})) << "it came back";
}

/// As vCPUs do it: each answers the newest tag, at any time, on its own thread.
TEST_F(Loop, SamplesOfAProbeThatComesAndGoesFireNowhereElse) {
  constexpr unsigned kCycles = 500, kVcpus = 2;
  vmm::FakeVcpuExits exits;
  VcpuSampler sampler(machine_, sample_contexts_, sink_, clock_, &shim_, &exits);
  sampler.open();
  std::atomic<bool> ended = false;
  std::vector<std::thread> vcpus;
  for (unsigned index = 0; index < kVcpus; ++index) {
    vcpus.emplace_back([&, index] {
      vmm::FakeStoppedVcpu vcpu(index);
      vcpu.state.gs_base = kKernelBase + (index == 0 ? kPercpu0 : kPercpu1);
      while (!ended) {
        sampler.on_sample(vcpu, exits.sampled);
        std::this_thread::yield();  // else on few processors nobody else gets the sampler's lock
      }
    });
  }
  for (unsigned n = 0; n < kCycles && !HasFailure(); ++n) {
    const std::size_t before = sink_.fired_of(kProfile.probe);
    sampler.sample(kProfile, 0);
    if (n % 2 == 0) {
      EXPECT_TRUE(eventually([&] { return sink_.fired_of(kProfile.probe) == before + kVcpus; }))
          << "in cycle " << n << ": each vCPU once";
    }
    sampler.forget(std::vector{kProfile.probe});
    const std::size_t fired = sink_.fired_of(kProfile.probe);
    sampler.sample(profile(8), 0);
    const std::size_t other = sink_.fired_of({8});
    if (n % 8 == 0) {
      EXPECT_TRUE(eventually([&] { return sink_.fired_of({8}) > other; })) << "in cycle " << n;
    }
    EXPECT_EQ(sink_.fired_of(kProfile.probe), fired) << "in cycle " << n;
  }
  ended = true;
  for (std::thread& vcpu : vcpus) vcpu.join();
}

TEST_F(Loop, ADeadMachineIsSampledOnlyOnce) {
  machine_.dead = true;

  sampler_.sample(kProfile, 17);
  sampler_.sample(kProfile, 17);

  EXPECT_TRUE(sink_.firings.empty());
  EXPECT_TRUE(sampler_.gave_up());
  EXPECT_EQ(machine_.pauses, 1u);
}

TEST_F(Loop, AMachineThatSleepsIsSampledAgainOnceItIsAwake) {
  machine_.asleep = true;
  sampler_.sample(kProfile, 17);
  EXPECT_TRUE(sink_.firings.empty());
  EXPECT_FALSE(sampler_.gave_up());
  machine_.asleep = false;

  sampler_.sample(kProfile, 17);

  EXPECT_EQ(sink_.firings.size(), 2u);
}

TEST(IdleWaitPauses, SpinsThenGrowsUpToTheLongestAndNeverPassesADeadline) {
  IdleWait wait(2);
  EXPECT_EQ(wait.idle(UINT64_MAX), 0u);
  EXPECT_EQ(wait.idle(UINT64_MAX), 0u);
  EXPECT_EQ(wait.idle(UINT64_MAX), IdleWait::kFirstPause);
  EXPECT_EQ(wait.idle(UINT64_MAX), IdleWait::kFirstPause * 3 / 2);
  EXPECT_EQ(wait.idle(1000), 1000u);
  for (int n = 0; n < 20; ++n) wait.idle(UINT64_MAX);
  EXPECT_EQ(wait.idle(UINT64_MAX), IdleWait::kLongestPause);

  wait.busy();

  EXPECT_EQ(wait.idle(UINT64_MAX), 0u);

  IdleWait other(0, IdleWait::kLongestUnwatched);
  EXPECT_EQ(other.idle(UINT64_MAX), IdleWait::kFirstPause);
  for (int n = 0; n < 30; ++n) other.idle(UINT64_MAX);
  EXPECT_EQ(other.idle(UINT64_MAX), IdleWait::kLongestUnwatched);
}

TEST(ReplayWaits, GrowSlowlyPastWhatIsUnearnedAndShrinkAsARingFills) {
  ReplayWait wait(IdleWait::kLongestUnwatched);
  EXPECT_EQ(wait.after(0), ReplayWait::kShortest);
  EXPECT_EQ(wait.after(0), ReplayWait::kUnearned);
  EXPECT_EQ(wait.after(0), ReplayWait::kUnearned * 3 / 2);
  for (int n = 0; n < 10; ++n) wait.after(0.01);
  EXPECT_EQ(wait.after(0), IdleWait::kLongestUnwatched);

  EXPECT_EQ(wait.after(1), IdleWait::kLongestUnwatched / 4);
  EXPECT_EQ(wait.after(0.5), IdleWait::kLongestUnwatched / 8);
  for (int n = 0; n < 10; ++n) wait.after(1);
  EXPECT_EQ(wait.after(1), ReplayWait::kShortest);
}

}  // namespace
}  // namespace ringside::providers
