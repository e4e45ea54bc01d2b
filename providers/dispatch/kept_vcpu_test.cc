#include <gtest/gtest.h>

#include <mutex>
#include <utility>
#include <vector>

#include "providers/dispatch/dispatch.h"
#include "providers/dispatch/firing_pause.h"
#include "providers/testing/fake_guest.h"

namespace ringside::providers {
namespace {

/// Of a program that takes a snapshot: its vCPU is to stand still.
class KeepingSink final : public ProbeSink {
 public:
  BriefLock& firing_lock(std::uint32_t) override { return lock_; }
  void wait_for_firings() override {}
  void fire(dif::ProbeId, const dif::FireRecord&, const dif::GuestContext& guest) override {
    if (!keeps) return;
    EXPECT_TRUE(guest.keep_still());
  }
  bool finished() const override { return false; }
  void keep(std::uint32_t cpu, const FiringVcpu& vcpu) override {
    EXPECT_FALSE(lock_.try_lock()) << "under the firing lock";
    kept.emplace_back(cpu, vcpu);
  }
  void settle(std::uint32_t cpu) override {
    const std::unique_lock free(lock_, std::try_to_lock);
    EXPECT_TRUE(free.owns_lock()) << "after it";
    settled.push_back(cpu);
  }

  bool keeps = true;
  std::vector<std::pair<std::uint32_t, FiringVcpu>> kept;
  std::vector<std::uint32_t> settled;

 private:
  BriefLock lock_;
};

TEST(KeptVcpu, StandsStillAfterTheFiringThatKeepsIt) {
  constexpr GuestVirt kPlace{0x1000};
  FakeMemory memory;
  FakeKernel::write_task(memory);
  const FakeKernel kernel;
  GuestClock clock(TickRate(1'000'000'000));
  LinuxContexts contexts(2, memory.memory(), kernel);
  Binding entry;
  entry.probe = {10};
  entry.plan = &kFunctionEntryArguments;
  KeepingSink sink;
  TrapDispatcher dispatcher(kernel, contexts, sink, clock, {.added = {{kPlace, entry}}});
  dispatcher.open();

  vmm::Trap trap;
  trap.address = kPlace;
  trap.percpu_base = kernel_address(kPercpu1);
  trap.registers.cr3 = kRoot;
  trap.registers.rdi = 7;

  dispatcher.on_trap(trap);
  dispatcher.on_stop(trap, 1, 0);
  sink.keeps = false;
  dispatcher.on_trap(trap);

  EXPECT_EQ(sink.settled, (std::vector<std::uint32_t>{1, 0}));
  ASSERT_EQ(sink.kept.size(), 2u);
  EXPECT_EQ(sink.kept[0].first, 1u);
  EXPECT_FALSE(sink.kept[0].second.vcpu) << "its per-CPU base tells which it is";
  EXPECT_EQ(sink.kept[0].second.percpu_base, kernel_address(kPercpu1));
  EXPECT_EQ(sink.kept[0].second.registers.rdi, 7u);
  EXPECT_EQ(sink.kept[1].second.vcpu, 1u);
}

}  // namespace
}  // namespace ringside::providers
