// Our VMM on a real /dev/kvm: exits, as they reach devices and sinks.
// Where it passes and skips: kvm_live_test.cc.
#include <gtest/gtest.h>

#include <set>

#include "vmm/kvm/testing/live_machine.h"

namespace ringside::vmm::kvm {
namespace {

using Kind = VcpuEvent::Kind;

// clang-format off
MINI_GUEST(guest_hello, R"(
  lea rsi, [rip + 3f]
  mov dx, 0x3f8
1: lodsb
  test al, al
  jz 2f
  out dx, al
  jmp 1b
2: )" MINI_GUEST_POWER_OFF R"(
3: .asciz "hello from the guest\n"
)");

MINI_GUEST(guest_ports, R"(
  mov rdi, 0x200000
  mov dx, 0x1234
  in al, dx
  mov [rdi], al
  in ax, dx
  mov [rdi + 8], ax
  in eax, dx
  mov [rdi + 16], eax
  mov al, 0x0d
  out 0x70, al
  in al, 0x71
  mov [rdi + 24], al
  mov dx, 0x3f8
  lea rsi, [rip + 3f]
  mov ecx, 6
  cld
  rep outsb
  mov dx, 0x3ff
  mov al, 0x5a
  out dx, al
  mov rdi, 0x200020
  mov ecx, 4
  rep insb
  )" MINI_GUEST_POWER_OFF R"(
3: .ascii "string"
)");

MINI_GUEST(guest_memory_ports, R"(
  mov rdi, 0x200000
  mov rsi, 0xd0000000
  mov eax, [rsi]
  mov [rdi], eax
  mov rsi, 0xd0100000
  mov rax, [rsi]
  mov [rdi + 8], rax
  mov byte ptr [rsi], 7
  mov al, [rsi]
  mov [rdi + 16], al
  )" MINI_GUEST_POWER_OFF);

// The IO-APIC's pin 2 to vector 0x30, the PIT once after 3.7 ms, then a look at what is requested.
MINI_GUEST(guest_awaits_pit, R"(
  mov rdi, 0xfee00000
  mov dword ptr [rdi + 0xf0], 0x1ff
  mov rsi, 0xfec00000
  mov dword ptr [rsi], 0x14
  mov dword ptr [rsi + 0x10], 0x30
  mov dword ptr [rsi], 0x15
  mov dword ptr [rsi + 0x10], 0
  mov al, 0x30
  out 0x43, al
  mov al, 0xff
  out 0x40, al
  mov al, 0x10
  out 0x40, al
  mov ecx, 200000
1: mov eax, [rdi + 0x210]
  test eax, 0x10000
  jnz 2f
  dec ecx
  jnz 1b
2: mov [0x200000], eax
  )" MINI_GUEST_POWER_OFF);

// Drives the second virtio device, the console: one descriptor on its queue 1.
MINI_GUEST(guest_writes_to_hvc0, R"(
  mov rdi, 0x200000
  mov qword ptr [rdi], 0x200300
  mov dword ptr [rdi + 8], 5
  mov word ptr [rdi + 0x102], 1
  mov dword ptr [rdi + 0x300], 0x30637668
  mov byte ptr [rdi + 0x304], 10
  mov rsi, 0xd0001000
  mov eax, [rsi + 0x008]
  mov [rdi + 0x400], eax
  mov dword ptr [rsi + 0x070], 0
  mov dword ptr [rsi + 0x070], 3
  mov dword ptr [rsi + 0x024], 1
  mov dword ptr [rsi + 0x020], 1
  mov dword ptr [rsi + 0x070], 11
  mov dword ptr [rsi + 0x030], 1
  mov dword ptr [rsi + 0x038], 8
  mov dword ptr [rsi + 0x080], 0x200000
  mov dword ptr [rsi + 0x090], 0x200100
  mov dword ptr [rsi + 0x0a0], 0x200200
  mov dword ptr [rsi + 0x044], 1
  mov dword ptr [rsi + 0x070], 15
  mov dword ptr [rsi + 0x050], 1
1: cmp word ptr [rdi + 0x202], 1
  jne 1b
  )" MINI_GUEST_POWER_OFF);

MINI_GUEST(guest_echoes, R"(
1: mov dx, 0x2fd
  in al, dx
  test al, 1
  jz 1b
  mov dx, 0x2f8
  in al, dx
  mov dx, 0x3e8
  out dx, al
  cmp al, 10
  jne 1b
  )" MINI_GUEST_POWER_OFF);

MINI_GUEST(guest_msrs, R"(
  mov ecx, 0xc0000100
  mov eax, 0x1000
  xor edx, edx
  wrmsr
  rdmsr
  mov [0x200000], eax
  mov ecx, 0x277
  rdmsr
  mov [0x200008], eax
  )" MINI_GUEST_POWER_OFF);

// By how much the TSC has moved, in units of 2^40 ticks.
MINI_GUEST(guest_adjusts_tsc, R"(
  rdtsc
  shl rdx, 32
  or rax, rdx
  mov rbx, rax
  mov ecx, 0x3b
  xor eax, eax
  mov edx, 0x100
  wrmsr
  rdtsc
  shl rdx, 32
  or rax, rdx
  sub rax, rbx
  shr rax, 40
  mov [0x200000], eax
  )" MINI_GUEST_POWER_OFF);

MINI_GUEST(guest_writes_pages, R"(
  mov rdi, 0x400000
  mov ecx, 32
1: mov qword ptr [rdi], 1
  add rdi, 4096
  dec ecx
  jnz 1b
  out 0x80, al
  )" MINI_GUEST_POWER_OFF);

// 200 times, leaf 0x40000000 among them; the registers of the last one go to memory.
MINI_GUEST(guest_asks_cpuid, R"(
  mov esi, 200
1: mov eax, 0x40000000
  xor ecx, ecx
  cpuid
  dec esi
  jnz 1b
  mov [0x200000], eax
  mov [0x200008], ebx
  mov [0x200010], ecx
  mov [0x200018], edx
  )" MINI_GUEST_POWER_OFF);

// Sets the local APIC's timer and halts, 20 times; the handler counts.
MINI_GUEST(guest_halts, R"(
  lea rax, [rip + 4f]
  mov rdi, 0x210000
  mov [rdi + 0x400], ax
  mov rdx, cs
  mov [rdi + 0x402], dx
  mov word ptr [rdi + 0x404], 0x8e00
  shr rax, 16
  mov [rdi + 0x406], eax
  mov qword ptr [rdi + 0x408], 0
  mov word ptr [0x200100], 0x7ff
  mov [0x200102], rdi
  lidt [0x200100]
  mov rsp, 0x220000
  mov rbx, 0xfee00000
  mov dword ptr [rbx + 0xf0], 0x1ff
  mov dword ptr [rbx + 0x3e0], 0xb
  mov dword ptr [rbx + 0x320], 0x40
  mov esi, 20
1: cli
  mov dword ptr [rbx + 0x380], 2000000
  sti
  hlt
  dec esi
  jnz 1b
  )" MINI_GUEST_POWER_OFF R"(
4: inc qword ptr [0x200000]
  mov dword ptr [rbx + 0xb0], 0
  iretq
)");

MINI_GUEST(guest_rings, R"(
  mov ecx, 10000
  mov dx, 0x5244
1: mov eax, ecx
  out dx, eax
  dec ecx
  jnz 1b
  )" MINI_GUEST_POWER_OFF);
// clang-format on

using KvmLiveExits = LiveTest;

TEST_F(KvmLiveExits, AGuestWritesToTheConsoleAndPowersOff) {
  boot(CODE_OF(guest_hello));

  EXPECT_EQ(await_end(), MachineState::PoweredOff);
  EXPECT_EQ(machine().status().console_tail(), "hello from the guest\n");
  EXPECT_EQ(machine().status().exit_report(), "");
}

TEST_F(KvmLiveExits, WhatTheSecondConsoleSaysIsSeenToo) {
  boot(CODE_OF(guest_writes_to_hvc0));

  EXPECT_EQ(await_end(), MachineState::PoweredOff);
  EXPECT_EQ(word(0x400), 3u) << "a console";
  EXPECT_EQ(machine().status().console_tail(), "hvc0\n");
}

TEST_F(KvmLiveExits, PortsOfEverySizeAndStringsReachTheDevices) {
  boot(CODE_OF(guest_ports));

  ASSERT_EQ(await_end(), MachineState::PoweredOff);
  EXPECT_EQ(word(0) & 0xff, 0xffu);
  EXPECT_EQ(word(8) & 0xffff, 0xffffu);
  EXPECT_EQ(word(16) & 0xffff'ffff, 0xffff'ffffu);
  EXPECT_EQ(word(24) & 0xff, 0x80u) << "the clock's battery";
  EXPECT_EQ(word(32), 0x5a5a'5a5au) << "the serial port's scratch register, four times";
  EXPECT_EQ(machine().status().console_tail(), "string");
}

TEST_F(KvmLiveExits, MemoryOutsideRamReachesTheDevices) {
  boot(CODE_OF(guest_memory_ports));

  ASSERT_EQ(await_end(), MachineState::PoweredOff);
  EXPECT_EQ(word(0), 0x7472'6976u) << "virtio's magic number";
  EXPECT_EQ(word(8), UINT64_MAX);
  EXPECT_EQ(word(16), 0xffu);
}

TEST_F(KvmLiveExits, TheCommandPortCarriesBytesBothWays) {
  boot(CODE_OF(guest_echoes));
  const CommandPort port = machine().command_port();

  ASSERT_EQ(write(port.control, "there and back\n", 15), 15);

  std::string back;
  char byte = 0;
  while (back.size() < 15 && becomes_readable(port.output) && read(port.output, &byte, 1) == 1) {
    back += byte;
  }
  EXPECT_EQ(back, "there and back\n");
  EXPECT_EQ(await_end(), MachineState::PoweredOff);
}

TEST_F(KvmLiveExits, TheDoorbellIsAnsweredOnTheVcpusThreadBeforeTheGuestGoesOn) {
  boot_with_sink(CODE_OF(guest_rings));

  EXPECT_EQ(await_end(), MachineState::PoweredOff);
  ASSERT_EQ(sink().doorbells.size(), 10000u);
  EXPECT_EQ(sink().doorbells.front(), 10000u);
  EXPECT_EQ(sink().doorbells.back(), 1u);
  EXPECT_TRUE(sink().events.empty()) << "nobody wanted any";
}

TEST_F(KvmLiveExits, PortsAndMemoryAreToldAsEvents) {
  boot_with_sink(CODE_OF(guest_memory_ports), {Kind::MmioRead, Kind::MmioWrite, Kind::PortOut});

  ASSERT_EQ(await_end(), MachineState::PoweredOff);
  const auto reads = sink().of(Kind::MmioRead), writes = sink().of(Kind::MmioWrite),
             out = sink().of(Kind::PortOut);
  ASSERT_GE(reads.size(), 3u);
  EXPECT_EQ(reads[0].values[0], 0xd000'0000u);
  EXPECT_EQ(reads[0].values[1], 4u);
  EXPECT_EQ(reads[0].values[2], 0x7472'6976u);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].values[0], 0xd010'0000u);
  EXPECT_EQ(writes[0].values[2], 7u);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].values[0], 0x604u);
  EXPECT_EQ(out[0].values[1], 2u);
  EXPECT_EQ(out[0].values[3], 0x2000u);
  const std::uint64_t instruction = find(CODE_OF(guest_memory_ports), {0x66, 0xef});
  EXPECT_EQ(sink().last_rip, instruction) << "rip is at the instruction on every host";
}

TEST_F(KvmLiveExits, ThePitComesInAtPinTwoOfTheIoApic) {
  boot(CODE_OF(guest_awaits_pit));

  ASSERT_EQ(await_end(), MachineState::PoweredOff);
  EXPECT_EQ(word(0), 0x1'0000u) << "vector 0x30 is requested";
}

TEST_F(KvmLiveExits, ExitsTellTheirReasonAndTimes) {
  boot_with_sink(CODE_OF(guest_hello), {Kind::Exit});

  ASSERT_EQ(await_end(), MachineState::PoweredOff);
  const auto exits = sink().of(Kind::Exit);
  ASSERT_GE(exits.size(), 21u);
  for (const VcpuEvent& exit : exits) {
    if (exit.reason == KVM_EXIT_IO) {
      EXPECT_GT(exit.values[0], 0u);
    }
  }
  EXPECT_GT(exits.back().values[1], 0u);
}

TEST_F(KvmLiveExits, AccessesOfModelSpecificRegistersAreToldAndDone) {
  if (!boot_with_sink(CODE_OF(guest_msrs), {Kind::MsrRead, Kind::MsrWrite})) {
    GTEST_SKIP() << refusal();
  }

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  const auto reads = sink().of(Kind::MsrRead), writes = sink().of(Kind::MsrWrite);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].values[0], 0xc000'0100u);
  EXPECT_EQ(writes[0].values[1], 0x1000u);
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].values[1], 0x1000u);
  EXPECT_EQ(reads[1].values[0], 0x277u);
  EXPECT_EQ(word(0), 0x1000u);
  EXPECT_EQ(word(8), reads[1].values[1] & 0xffff'ffff);
}

TEST_F(KvmLiveExits, TheTscIsAdjustedAlsoWhereAccessesAreTold) {
  boot(CODE_OF(guest_adjusts_tsc));
  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  if (word(0) != 1) GTEST_SKIP() << "a KVM that moves no TSC, whoever asks";
  if (!boot_with_sink(CODE_OF(guest_adjusts_tsc), {Kind::MsrRead, Kind::MsrWrite})) {
    GTEST_SKIP() << refusal();
  }

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  EXPECT_EQ(word(0), 1u);
}

TEST_F(KvmLiveExits, WrittenPagesAreTold) {
  if (!boot_with_sink(CODE_OF(guest_writes_pages), {Kind::Dirty})) GTEST_SKIP() << refusal();

  ASSERT_EQ(await_end(), MachineState::PoweredOff);
  std::set<std::uint64_t> pages;
  for (const VcpuEvent& event : sink().of(Kind::Dirty)) pages.insert(event.values[0]);
  for (std::uint64_t page = 0; page < 32; ++page) {
    EXPECT_TRUE(pages.contains(0x40'0000 + page * 4096)) << page;
  }
}

TEST_F(KvmLiveExits, EveryCpuidIsToldWhereItStands) {
  if (!boot_with_sink(CODE_OF(guest_asks_cpuid), {Kind::Cpuid})) GTEST_SKIP() << refusal();

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  const auto told = sink().of(Kind::Cpuid);
  ASSERT_EQ(told.size(), 200u);
  for (const VcpuEvent& cpuid : told) {
    EXPECT_EQ(cpuid.values[0], 0x4000'0000u);
    EXPECT_EQ(cpuid.values[1], 0u);
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(told.back().values[2 + i], word(8 * i)) << i;
  EXPECT_EQ(sink().last_rip, find(CODE_OF(guest_asks_cpuid), {0x0f, 0xa2}));
  EXPECT_EQ(machine().exits()->lost_events(), 0u);
}

TEST_F(KvmLiveExits, EveryHaltIsToldOnceWithItsTime) {
  if (!boot_with_sink(CODE_OF(guest_halts), {Kind::Hlt})) GTEST_SKIP() << refusal();

  ASSERT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  EXPECT_EQ(word(0), 20u) << "the timer";
  const auto told = sink().of(Kind::Hlt);
  ASSERT_EQ(told.size(), 20u);
  std::uint64_t all = 0;
  for (const VcpuEvent& halt : told) all += halt.values[0];
  EXPECT_GT(all, 0u);
  if (told.back().values[0] != 0) {  // else it did not sleep, and is told later
    EXPECT_EQ(sink().last_rip, find(CODE_OF(guest_halts), {0xf4}));
  }
}

}  // namespace
}  // namespace ringside::vmm::kvm
