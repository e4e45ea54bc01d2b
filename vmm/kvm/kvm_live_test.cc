// Our VMM on a real /dev/kvm, with guests of a few instructions: the life of a machine, pauses,
// samples, SMP, the end. Passes on hardware, on a KVM that emulates kernel mode, and nested under a
// TCG SVM; skips, with the reason, where there is no KVM. Exits:
// kvm_live_exits_test.cc; breakpoints: kvm_live_traps_test.cc.
#include <gtest/gtest.h>

#include <thread>

#include "vmm/kvm/testing/live_machine.h"

namespace ringside::vmm::kvm {
namespace {

// clang-format off
MINI_GUEST(guest_counts, R"(
  mov rdi, 0x200000
1: inc qword ptr [rdi]
  jmp 1b
)");

MINI_GUEST(guest_two_vcpus, MINI_GUEST_START_SECOND_VCPU R"(
1: cmp word ptr [0x5000], 0x1234
  jne 1b
  )" MINI_GUEST_POWER_OFF R"(
  .code16
5: xor ax, ax
  mov ds, ax
  mov word ptr [0x5000], 0x1234
7: jmp 7b
6: .code64
)");

MINI_GUEST(guest_triple_fault, R"(
  mov rbx, 0x1122334455667788
  ud2
)");

MINI_GUEST(guest_resets, "mov dx, 0xcf9\n mov al, 6\n out dx, al\n 1: jmp 1b\n");

MINI_GUEST(guest_resets_by_keyboard, "mov al, 0xfe\n out 0x64, al\n 1: jmp 1b\n");

MINI_GUEST(guest_panics, "mov dx, 0x505\n mov al, 1\n out dx, al\n 1: jmp 1b\n");

// A driver of the random numbers that gives the queue a table at address 8.
MINI_GUEST(guest_misplaces_a_ring, R"(
  mov rdi, 0xd0000000
  mov dword ptr [rdi + 0x24], 1
  mov dword ptr [rdi + 0x20], 1
  mov dword ptr [rdi + 0x70], 11
  mov dword ptr [rdi + 0x38], 8
  mov dword ptr [rdi + 0x80], 8
  mov dword ptr [rdi + 0x44], 1
  mov dword ptr [rdi + 0x70], 15
  mov eax, [rdi + 0x70]
  mov [0x200000], eax
  )" MINI_GUEST_POWER_OFF);
// clang-format on

using KvmLive = LiveTest;

TEST_F(KvmLive, APausedGuestStandsStillAndShowsWhereItIs) {
  boot(CODE_OF(guest_counts));
  await_word(0);

  for (int round = 0; round < 100; ++round) {
    std::uint64_t before = 0;
    {
      auto paused = PausedMachine::pause(machine());
      ASSERT_TRUE(paused);
      before = word(0);
      const auto registers = paused->registers(0);
      ASSERT_TRUE(registers);
      EXPECT_GE(registers->rip, kGuestCode);
      EXPECT_LT(registers->rip, kGuestCode + 32);
      EXPECT_EQ(registers->rdi, kGuestData);
      EXPECT_FALSE(paused->registers(1));
      EXPECT_EQ(word(0), before);
    }
    await_more(0, before);
  }
}

TEST_F(KvmLive, PausesNest) {
  boot(CODE_OF(guest_counts));
  await_word(0);
  std::uint64_t before = 0;
  {
    auto outer = PausedMachine::pause(machine());
    ASSERT_TRUE(outer);
    before = word(0);
    { ASSERT_TRUE(PausedMachine::pause(machine())); }
    std::this_thread::yield();
    EXPECT_EQ(word(0), before);
  }
  await_more(0, before);
}

TEST_F(KvmLive, AHeldGuestBeginsWithItsRelease) {
  hold();
  boot(CODE_OF(guest_counts));
  {
    auto paused = PausedMachine::pause(machine());
    ASSERT_TRUE(paused);
    const auto registers = paused->registers(0);
    ASSERT_TRUE(registers);
    EXPECT_EQ(registers->rip, kGuestCode);
  }
  EXPECT_EQ(word(0), 0u);

  machine().vcpus().release();

  await_word(0);
}

TEST_F(KvmLive, CodeWrittenWhilePausedIsExecuted) {
  boot(CODE_OF(guest_counts));
  await_word(0);
  {
    auto paused = PausedMachine::pause(machine());
    ASSERT_TRUE(paused);
    std::vector<CodeWrite> writes;
    const std::uint8_t dec_and_back[] = {0x48, 0xff, 0x0f, 0xeb, 0xfb};  // dec [rdi]; jmp
    const std::uint64_t loop = find(CODE_OF(guest_counts), {0x48, 0xff, 0x07});
    for (std::uint64_t i = 0; i < std::size(dec_and_back); ++i) {
      writes.push_back({GuestPhys(loop + i), dec_and_back[i]});  // mapped one to one
    }
    ASSERT_TRUE(paused->write_code(writes));
    EXPECT_FALSE(paused->write_code(std::vector<CodeWrite>{{GuestPhys(0x7fff'0000'0000), 0}}));
  }
  const std::uint64_t start = word(0);
  while (word(0) == start) std::this_thread::yield();
  EXPECT_LT(static_cast<std::int64_t>(word(0)), static_cast<std::int64_t>(start));
}

TEST_F(KvmLive, TheSecondVcpuStartsWithInitAndSipi) {
  vcpus(2);
  boot(CODE_OF(guest_two_vcpus));

  EXPECT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
}

TEST_F(KvmLive, ATripleFaultLeavesItsState) {
  boot(CODE_OF(guest_triple_fault));

  EXPECT_EQ(await_end(), MachineState::Died);
  const std::string words = machine().status().exit_report();
  EXPECT_EQ(machine().status().exit_reason().rfind("triple fault on vCPU 0", 0), 0u) << words;
  const bool kept = words.find("rbx 1122334455667788") != std::string::npos;
  const bool lost = words.find("keeps no state") != std::string::npos;
  EXPECT_TRUE(kept || lost) << words;
}

TEST_F(KvmLive, EveryWayToEndIsToldApart) {
  boot(CODE_OF(guest_resets));
  EXPECT_EQ(await_end(), MachineState::Rebooted);
  boot(CODE_OF(guest_resets_by_keyboard));
  EXPECT_EQ(await_end(), MachineState::Rebooted);
  boot(CODE_OF(guest_panics));
  EXPECT_EQ(await_end(), MachineState::Panicked);
  EXPECT_TRUE(machine().status().exit_report().starts_with("on vCPU 0\nrip 00000000001000"))
      << machine().status().exit_report();
  EXPECT_FALSE(PausedMachine::pause(machine()));
}

TEST_F(KvmLive, ADriverThatBreaksTheRulesIsNamed) {
  boot(CODE_OF(guest_misplaces_a_ring));

  EXPECT_EQ(await_end(), MachineState::PoweredOff);
  EXPECT_EQ(word(0), 15u | 64) << "DEVICE_NEEDS_RESET";
  EXPECT_EQ(warnings(),
            "the device of random numbers waits to be reset: the guest's driver gave it a ring "
            "that is misaligned, of a wrong size, or outside the guest's memory");
}

TEST_F(KvmLive, ShuttingDownEndsAGuestThatSpins) {
  vcpus(2);
  boot(CODE_OF(guest_counts));
  await_word(0);

  machine().shut_down();
  machine().shut_down();

  EXPECT_NE(machine().state(), MachineState::Running);
  EXPECT_TRUE(becomes_readable(machine().status().event_fd(), 1));
}

TEST_F(KvmLive, ASampleShowsAVcpuWhereItRuns) {
  boot_with_sink(CODE_OF(guest_counts));
  await_word(0);

  for (std::uint64_t tag = 1; tag <= 200; ++tag) {
    machine().exits()->sample(tag);
    sink().await_sample(tag);
  }

  ASSERT_EQ(sink().samples.size(), 200u);
  for (const auto& [tag, rip] : sink().samples) {
    EXPECT_GE(rip, kGuestCode);
    EXPECT_LT(rip, kGuestCode + 32);
  }
}

}  // namespace
}  // namespace ringside::vmm::kvm
