// Breakpoints on a real /dev/kvm, counted to the last one: under instructions that we execute
// ourselves and under such as the vCPU steps over, on one vCPU and on two at once, before the guest
// has an IDT and after, beside int3s of the guest's own.
#include <gtest/gtest.h>

#include "vmm/kvm/testing/live_machine.h"

namespace ringside::vmm::kvm {
namespace {

constexpr unsigned kCalls = 10000, kFewerCalls = 1000;

// clang-format off
/// 10,000 calls of a function that begins with a nop, and 1,000 of one that begins with a memory
/// access.
MINI_GUEST(guest_calls, R"(
  mov rsp, 0x180000
  mov rdi, 0x200000
  mov ecx, 10000
1: call 2f
  dec ecx
  jnz 1b
  mov ecx, 1000
4: call 3f
  dec ecx
  jnz 4b
  )" MINI_GUEST_POWER_OFF R"(
2: .byte 0x0f, 0x1f, 0x44, 0, 0
  inc qword ptr [rdi]
  ret
3: inc qword ptr [rdi + 8]
  ret
)");

/// Comes to 2: from elsewhere, like a vCPU that was interrupted after the push, then thrice by 1:.
MINI_GUEST(guest_jumps_past_a_push, R"(
  mov rsp, 0x180000
  mov rdi, 0x200000
  mov edx, 0xee
  xor ecx, ecx
  jmp 2f
1: push rcx
2: inc dword ptr [rdi]
  inc ecx
  cmp ecx, 4
  jne 1b
  mov [rdi + 8], rsp
  )" MINI_GUEST_POWER_OFF);

/// The same with an IDT whose gate 3 counts, and eight functions, the last of which is an int3 of
/// the guest's own. Says by port 0x5244 that the IDT is there.
MINI_GUEST(guest_with_gate, R"(
  mov rsp, 0x180000
  mov rdi, 0x200000
  lea rax, [rip + 8f]
  mov rbx, 0x190030
  mov [rbx], ax
  mov word ptr [rbx + 2], 0x10
  mov word ptr [rbx + 4], 0x8e00
  shr rax, 16
  mov [rbx + 6], ax
  shr rax, 16
  mov [rbx + 8], rax
  lidt [rip + 9f]
  mov dx, 0x5244
  mov eax, 1
  out dx, eax
  mov ecx, 1000
1: call 11f
  call 12f
  call 13f
  call 14f
  call 15f
  call 16f
  int3
  dec ecx
  jnz 1b
  )" MINI_GUEST_POWER_OFF R"(
11: push rbp
  pop rbp
  ret
12: sub rsp, 8
  add rsp, 8
  ret
13: mov rbp, rsp
  ret
14: inc qword ptr [rdi + 16]
  ret
15: ret
  int3
16: lea rbp, [rsp + 8]
  ret
8: inc qword ptr [rdi + 24]
  iretq
9: .word 0xfff
  .quad 0x190000
)");

/// Both vCPUs call the same function; the second comes from real mode to long mode by itself.
MINI_GUEST(guest_two_callers, MINI_GUEST_START_SECOND_VCPU R"(
  mov rsp, 0x180000
  mov rdi, 0x200000
1: cmp qword ptr [rdi + 16], 1
  jne 1b
  call 3f
2: cmp qword ptr [rdi + 8], 2
  jne 2b
  )" MINI_GUEST_POWER_OFF R"(
3: mov ecx, 1000
4: call 7f
  dec ecx
  jnz 4b
  lock inc qword ptr [rdi + 8]
  ret
7: lock inc qword ptr [rdi]
  ret
  .code16
5: xor ax, ax
  mov ds, ax
  mov eax, cr4
  or eax, 0x20
  mov cr4, eax
  mov eax, 0x9000
  mov cr3, eax
  mov ecx, 0xc0000080
  rdmsr
  or eax, 0x100
  wrmsr
  mov eax, 0x80000011
  mov cr0, eax
  lgdtd [0x8000 + 20f - 5b]
  .byte 0x66, 0xea
  .long 0x8000 + 21f - 5b
  .word 0x10
20: .word 31
  .long 0x500
  .code64
21: mov rsp, 0x170000
  mov rdi, 0x200000
  mov qword ptr [rdi + 16], 1
  mov rax, 0x100000 + 3b - guest_two_callers
  call rax
22: jmp 22b
6:
)");

MINI_GUEST(guest_own_int3, R"(
  mov rsp, 0x180000
  int3
1: jmp 1b
)");
// clang-format on

using KvmLiveTraps = LiveTest;

TEST_F(KvmLiveTraps, EveryCallIsSeenBeforeThereIsAnIdt) {
  const std::uint64_t nop = find(CODE_OF(guest_calls), {0x0f, 0x1f, 0x44});
  const std::uint64_t inc = find(CODE_OF(guest_calls), {0x48, 0xff, 0x47, 0x08});
  ASSERT_TRUE(boot_with_sink(CODE_OF(guest_calls), {}, {GuestVirt(nop), GuestVirt(inc)}))
      << refusal();

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  EXPECT_EQ(sink().hits_at(nop), kCalls);
  EXPECT_EQ(sink().hits_at(inc), kFewerCalls);
  EXPECT_EQ(sink().hits.size(), kCalls + kFewerCalls);
  EXPECT_EQ(sink().wrong_rip, 0u);
  EXPECT_EQ(word(0), kCalls);
  EXPECT_EQ(word(8), kFewerCalls) << "the instruction under the breakpoint is executed once a call";
}

TEST_F(KvmLiveTraps, CodeIsSeenWhereItWasLoadedBeforeItRunsAtItsOwnAddress) {
  constexpr std::uint64_t kLinkedFor = 0xffff'ffff'8000'0000;
  const auto code = CODE_OF(guest_calls);
  const std::uint64_t nop = find(code, {0x0f, 0x1f, 0x44});
  std::vector<GuestVirt> at;
  for (const std::uint64_t place : {kGuestCode, find(code, {0x48, 0xc7, 0xc7}), nop, nop + 5,
                                    find(code, {0x48, 0xff, 0x47, 0x08})}) {
    at.emplace_back(kLinkedFor + place);
  }
  const auto loaded_at = [](GuestVirt linked) { return GuestPhys(linked.raw() - kLinkedFor); };
  ASSERT_TRUE(boot_with_sink(code, {}, at, loaded_at)) << refusal();

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  EXPECT_EQ(sink().hits_at(at[0].raw()), 1u);
  EXPECT_EQ(sink().hits_at(at[1].raw()), 1u);
  EXPECT_EQ(sink().hits_at(at[2].raw()), kCalls);
  EXPECT_EQ(sink().hits_at(at[3].raw()), kCalls);
  EXPECT_EQ(sink().hits_at(at[4].raw()), kFewerCalls);
  EXPECT_EQ(word(0), kCalls);
  EXPECT_EQ(word(8), kFewerCalls);
}

TEST_F(KvmLiveTraps, ABreakpointAtTheFirstInstructionIsSeen) {
  ASSERT_TRUE(boot_with_sink(CODE_OF(guest_calls), {}, {GuestVirt(kGuestCode)})) << refusal();

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  EXPECT_EQ(sink().hits.size(), 1u);
}

TEST_F(KvmLiveTraps, WhoComesToTheInstructionBehindAShortOneFindsItWhole) {
  const auto code = CODE_OF(guest_jumps_past_a_push);
  const std::uint64_t push = find(code, {0x51, 0xff, 0x07});
  ASSERT_TRUE(boot_with_sink(code, {}, {GuestVirt(push)})) << refusal();

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  EXPECT_EQ(sink().hits_at(push), 3u);
  EXPECT_EQ(word(0) & UINT32_MAX, 4u);
  EXPECT_EQ(word(8), 0x18'0000u - 3 * 8);
}

/// Sets breakpoints once the guest rings, from outside.
class RingingSink final : public RecordingSink {
 public:
  void on_doorbell(StoppedVcpu&, std::uint32_t) override {
    rung = true;
    while (!answered) std::this_thread::yield();
  }
  std::atomic<bool> rung{false}, answered{false};
};

TEST_F(KvmLiveTraps, AnyNumberIsSeenOnceTheGuestHasAGateAndItsOwnInt3StaysItsOwn) {
  const auto code = CODE_OF(guest_with_gate);
  const std::vector<GuestVirt> at = {
      GuestVirt(find(code, {0x55, 0x5d, 0xc3})),
      GuestVirt(find(code, {0x48, 0x83, 0xec, 8})),
      GuestVirt(find(code, {0x48, 0x89, 0xe5, 0xc3})),
      GuestVirt(find(code, {0x48, 0xff, 0x47, 16})),
      GuestVirt(find(code, {0xc3, 0xcc})),
      GuestVirt(find(code, {0x48, 0x8d, 0x6c})),
  };
  RingingSink ringing;
  hold();
  boot(code);
  {
    auto paused = PausedMachine::pause(machine());
    ASSERT_TRUE(paused);
    machine().exits()->set_sink(*paused, &ringing);
  }
  machine().vcpus().release();
  while (!ringing.rung) std::this_thread::yield();
  {
    auto paused = PausedMachine::pause(machine());
    ASSERT_TRUE(paused);
    const auto done = machine().exits()->set_breakpoints(*paused, at, {});
    ASSERT_TRUE(done) << done.error().message;
  }
  ringing.answered = true;

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  for (const GuestVirt address : at) {
    EXPECT_EQ(ringing.hits_at(address.raw()), kFewerCalls) << std::hex << address.raw();
  }
  EXPECT_EQ(ringing.wrong_rip, 0u);
  EXPECT_EQ(word(16), kFewerCalls);
  EXPECT_EQ(word(24), kFewerCalls) << "the guest's own int3";
}

TEST_F(KvmLiveTraps, TwoVcpusLoseNothingWhileOneStepsUnderABreakpoint) {
  const auto code = CODE_OF(guest_two_callers);
  const std::uint64_t inc = find(code, {0xf0, 0x48, 0xff, 0x07});
  vcpus(2);
  ASSERT_TRUE(boot_with_sink(code, {}, {GuestVirt(inc)})) << refusal();

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  EXPECT_EQ(sink().hits_at(inc), 2 * kFewerCalls);
  EXPECT_EQ(word(0), 2 * kFewerCalls);
}

TEST_F(KvmLiveTraps, BreakpointsThatComeAndGoLoseNoInstruction) {
  const std::uint64_t inc = find(CODE_OF(guest_calls), {0x48, 0xff, 0x47, 0x08});
  ASSERT_TRUE(boot_with_sink(CODE_OF(guest_calls))) << refusal();

  for (int round = 0; round < 50; ++round) {
    auto paused = PausedMachine::pause(machine());
    if (!paused) break;  // it has ended already
    const GuestVirt at(inc);
    const auto done =
        machine().exits()->set_breakpoints(*paused, std::span(&at, round % 2 == 0 ? 1 : 0), {});
    ASSERT_TRUE(done) << done.error().message;
  }

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  EXPECT_EQ(word(8), kFewerCalls);
  EXPECT_LE(sink().hits.size(), kFewerCalls);
}

TEST_F(KvmLiveTraps, AnInt3OfTheGuestWithoutAGateEndsItWithBreakpointsOfOursOrWithout) {
  boot(CODE_OF(guest_own_int3));
  EXPECT_EQ(await_end(), MachineState::Died);
  EXPECT_NE(machine().status().exit_report(), "");

  const std::uint64_t loop = find(CODE_OF(guest_own_int3), {0xeb, 0xfe});
  ASSERT_TRUE(boot_with_sink(CODE_OF(guest_own_int3), {}, {GuestVirt(loop)})) << refusal();
  EXPECT_EQ(await_end(), MachineState::Died);
  EXPECT_TRUE(sink().hits.empty());
}

TEST_F(KvmLiveTraps, AnAddressWithoutMemoryIsRefusedAndTheRestStays) {
  hold();
  boot(CODE_OF(guest_calls));
  std::vector<GuestVirt> far;
  for (std::uint64_t i = 0; i < 5; ++i) far.emplace_back(0xffff'ffff'8000'0000 + i * 64);
  auto paused = PausedMachine::pause(machine());
  ASSERT_TRUE(paused);

  const auto done = machine().exits()->set_breakpoints(*paused, far, {});

  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("debug registers"), std::string::npos);
}

}  // namespace
}  // namespace ringside::vmm::kvm
