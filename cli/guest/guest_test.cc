#include "cli/guest/guest.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>

#include "vmm/base/unique_fd.h"
#include "vmm/inert_machine_for_tests.h"

namespace ringside::cli {
namespace {

using vmm::MachineState;

/// A machine that has ended, or ends when told to.
class EndedMachine : public vmm::InertMachine {
 public:
  explicit EndedMachine(MachineState state) : state_(state) {}

  void end(MachineState state) {
    state_ = state;
    eventfd_write(event_.get(), 1);
  }
  vmm::GuestMemory& memory() override { return memory_; }
  MachineState state() const override { return state_; }
  int event_fd() const override { return event_.get(); }
  std::string console_tail() const override { return console; }
  std::string exit_reason() const override { return cause; }
  bool was_ended_by_us() const override { return ended_by_us; }
  bool is_others() const override { return others; }

  void take_memory_along() { memory_ = vmm::GuestMemory(); }

  std::string console, cause;
  bool ended_by_us = false, others = false;

 private:
  std::array<std::byte, 4096> ram_{};
  vmm::GuestMemory memory_{{{GuestPhys(0), ram_}}};
  std::atomic<MachineState> state_;
  UniqueFd event_{eventfd(0, EFD_CLOEXEC)};
};

TEST(DescribeEnd, TellsTheConsolesLastLine) {
  EndedMachine machine(MachineState::Rebooted);
  EXPECT_EQ(describe_end(machine), "the guest rebooted");

  machine.console = "loading\r\nreboot: Restarting system\r\n";

  EXPECT_EQ(describe_end(machine),
            "the guest rebooted; the last line of its console: reboot: Restarting system");
}

TEST(DescribeEnd, FindsThePanicBeforeItsBacktrace) {
  EndedMachine machine(MachineState::Panicked);
  machine.console = "booting\nKernel panic - not syncing: Fatal exception\r\nCPU: 1\nCall Trace:\n";

  EXPECT_EQ(describe_end(machine),
            "the guest panicked; the last line of its console: Kernel panic - not syncing: Fatal "
            "exception");
}

TEST(DescribeEnd, CallsTheEndOfAnothersProcessNoDeath) {
  EndedMachine machine(MachineState::Died);
  machine.others = true;
  machine.cause = "its QEMU has ended";

  EXPECT_EQ(describe_end(machine), "its QEMU has ended");
}

TEST(DescribeEnd, TellsWhatTheProcessDiedOf) {
  EndedMachine machine(MachineState::Died);
  machine.cause = "signal 6 (Aborted): assertion failed";
  machine.console = "booting\n";

  EXPECT_EQ(describe_end(machine),
            "fake died: signal 6 (Aborted): assertion failed; the last line of its console: "
            "booting");
}

TEST(AwaitEnd, SeesAnEndThatComesAMomentLater) {
  EndedMachine machine(MachineState::Running);
  std::thread later([&] { machine.end(MachineState::Panicked); });

  EXPECT_TRUE(await_end(machine));

  later.join();
}

TEST(IsEnding, IsSeenByItsMemoryFirst) {
  EndedMachine machine(MachineState::Running);
  EXPECT_FALSE(is_ending(machine));
  machine.take_memory_along();
  std::thread later([&] { machine.end(MachineState::Died); });

  EXPECT_TRUE(is_ending(machine));

  later.join();
}

TEST(OrLost, WhatCannotBeReadOfAMachineThatEndsIsNoFactOfIt) {
  const Error unread{ErrorCode::Invalid, "the kernel's image is not in RAM"};
  EndedMachine machine(MachineState::Running);
  EXPECT_EQ(or_lost(unread, machine).message, unread.message);
  machine.take_memory_along();
  std::thread later([&] { machine.end(MachineState::Died); });

  const Error error = or_lost(unread, machine);

  EXPECT_EQ(error.message, "lost before tracing began: fake died");
  EXPECT_EQ(error.code, ErrorCode::MachineGone);
  later.join();
}

TEST(OrLost, WhyWeEndedAMachineStays) {
  const Error silent{ErrorCode::MachineGone, "its gdbstub did not answer; it was ended"};
  EndedMachine machine(MachineState::Died);
  machine.ended_by_us = true;

  EXPECT_EQ(or_lost(silent, machine).message, silent.message);
}

}  // namespace
}  // namespace ringside::cli
