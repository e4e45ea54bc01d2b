// ThreadClock on a fake run queue: between the scheduler's updates, over them, and for idle tasks.
#include "providers/context/thread_clock.h"

#include <gtest/gtest.h>

#include "providers/testing/fake_guest.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kQueues = 0x100;  // per CPU
constexpr std::uint64_t kClock = kPercpu0 + kQueues + 8, kClockTask = kPercpu0 + kQueues + 16;
constexpr std::uint64_t kPreemptCount = 0x180;  // per CPU
constexpr std::uint64_t kKhz = 0x40000;         // of a TSC whose ticks are nanoseconds
constexpr std::uint64_t kSum = kTask + 40, kExecStart = kTask + 64;

class ThreadClockTest : public ::testing::Test {
 protected:
  ThreadClockTest() {
    FakeKernel::write_task(memory_);
    guest_linux::SymbolTable& symbols = kernel_.symbols_to_fill();
    symbols.add_module({"vmlinux", GuestVirt(kKernelBase), 0x1000, 0},
                       {{GuestVirt(kQueues), 8, symbols.intern("runqueues"), 'D', 0},
                        {kernel_address(kKhz), 4, symbols.intern("tsc_khz"), 'D', 0},
                        {GuestVirt(kPreemptCount), 4, symbols.intern("__preempt_count"), 'D', 0}});
    symbols.seal();
    memory_.put32(kKhz, 1'000'000);
  }
  /// As update_curr() leaves it: what has run until `clock` is in the sum.
  void update(std::uint64_t clock, std::uint64_t for_interrupts, std::uint64_t sum) {
    memory_.put64(kClock, clock);
    memory_.put64(kClockTask, clock - for_interrupts);
    memory_.put64(kExecStart, clock - for_interrupts);
    memory_.put64(kSum, sum);
  }
  void make() { clock_.emplace(kernel_, reader_, run_times_); }
  std::uint64_t ran(std::optional<std::uint64_t> tsc) {
    const auto when = tsc ? std::optional(TrapMoment{*tsc, *tsc}) : std::nullopt;
    return clock_->ran(reader_, kernel_address(kPercpu0), kernel_address(kTask), when)
        .value_or(0xdead);
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  vmm::PageTableReader reader_{memory_.memory(), kernel_.table()};
  RunTimes run_times_;
  std::optional<ThreadClock> clock_;
};

TEST_F(ThreadClockTest, GoesOnBetweenUpdates) {
  make();
  update(5'000'000, 0, 700);

  EXPECT_EQ(ran(1'000'000), 700u) << "the first firing takes the update for its own moment";
  EXPECT_EQ(ran(1'000'300), 1'000u);
  EXPECT_EQ(ran(3'000'000), 2'000'700u);
  update(7'000'000, 0, 2'000'700);
  EXPECT_EQ(ran(3'000'000), 2'000'700u) << "an update changes nothing of what has run";
}

TEST_F(ThreadClockTest, LearnsFromTheFiringThatIsNextToAnUpdate) {
  make();
  update(5'000'000, 0, 0);
  EXPECT_EQ(ran(1'000'900), 0u);
  update(6'000'000, 0, 0);

  EXPECT_EQ(ran(2'000'100), 0u);
  EXPECT_EQ(ran(2'000'900), 800u);
}

TEST_F(ThreadClockTest, LeavesOutWhatInterruptsTook) {
  make();
  update(5'000'000, 0, 0);
  EXPECT_EQ(ran(1'000'000), 0u);
  update(6'000'000, 400'000, 600'000);

  EXPECT_EQ(ran(2'000'000), 600'000u);
  EXPECT_EQ(ran(2'000'050), 600'050u);
}

TEST_F(ThreadClockTest, AFiringWithoutATscIsOfTheLastUpdateButNeverEarlier) {
  make();
  update(5'000'000, 0, 700);

  EXPECT_EQ(ran(std::nullopt), 700u);
  EXPECT_EQ(ran(1'000'000), 700u);
  EXPECT_EQ(ran(1'000'300), 1'000u);
  EXPECT_EQ(ran(std::nullopt), 1'000u);
}

TEST_F(ThreadClockTest, AnswersOfATscThatWasSetAreTheSchedulersOwn) {
  make();
  update(5'000'000'000, 0, 700);
  EXPECT_EQ(ran(1'000'000'000), 700u);
  update(5'001'000'000, 0, 1'000'700);

  EXPECT_EQ(ran(60'000'000'000), 1'000'700u);
  EXPECT_EQ(ran(60'000'000'300), 1'001'000u);
}

TEST_F(ThreadClockTest, LeavesOutTheTimeThatItStoodStillForFirings) {
  const RunTimes::Thread task{kernel_address(kTask), 0x11};
  memory_.put32(kTask + 16, 0x11);
  make();
  update(5'000'000, 0, 0);
  EXPECT_EQ(ran(1'000'000), 0u);
  clock_->waited(reader_, kernel_address(kPercpu0), task, 400);
  EXPECT_EQ(ran(1'001'000), 600u);

  update(6'000'000, 400'000, 600'000);  // this kernel keeps the time of interrupts apart
  const std::uint64_t in_task = ran(2'000'000);
  memory_.put32(kPercpu0 + kPreemptCount, 0x10001);
  clock_->waited(reader_, kernel_address(kPercpu0), task, 300);
  EXPECT_EQ(ran(2'001'000), in_task + 1'000) << "of an interrupt, which is not in the account";
  memory_.put32(kPercpu0 + kPreemptCount, 0x200);
  clock_->waited(reader_, kernel_address(kPercpu0), task, 300);
  EXPECT_EQ(ran(2'002'000), in_task + 1'700) << "soft interrupts are off, it is in none";
}

TEST_F(ThreadClockTest, AnIdleTaskDoesNotRun) {
  make();
  update(5'000'000, 0, 0);
  memory_.put32(kTask + 16, 0);
  memory_.put64(kExecStart, 0);

  EXPECT_EQ(ran(1'000'000), 0u);
}

TEST_F(ThreadClockTest, NeedsTheMembersOfTheKernel) {
  kernel_.layout_to_change().rq_clock.reset();
  make();

  EXPECT_EQ(ran(1'000'000), 0xdeadu);
}

}  // namespace
}  // namespace ringside::providers
