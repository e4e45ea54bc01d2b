#include "vmm/kvm/vcpu/current_exit.h"

#include <gtest/gtest.h>

#include "vmm/kvm/vcpu/fakes_for_tests.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint32_t kTsc = 0x10, kKernelGsBase = 0xc000'0102;

std::size_t out_before(std::initializer_list<std::uint8_t> code, std::uint16_t port) {
  const std::vector<std::uint8_t> bytes(code);
  return length_of_out_before(std::as_bytes(std::span(bytes)), port);
}

void leave_by_out(VcpuFakes& fakes, std::uint64_t rip, std::uint16_t port) {
  fakes.regs().rip = rip;
  fakes.kvm.area.exit_reason = KVM_EXIT_IO;
  fakes.kvm.area.io.direction = KVM_EXIT_IO_OUT;
  fakes.kvm.area.io.port = port;
}

TEST(LengthOfOutBefore, KnowsEachFormWithItsPrefixes) {
  EXPECT_EQ(out_before({0x90, 0x90, 0xe6, 0x80}, 0x80), 2u);    // out 0x80, al
  EXPECT_EQ(out_before({0x90, 0x66, 0xe7, 0x80}, 0x80), 3u);    // out 0x80, ax
  EXPECT_EQ(out_before({0x90, 0x90, 0x90, 0xee}, 0x5244), 1u);  // out dx, al
  EXPECT_EQ(out_before({0x90, 0x90, 0x66, 0xef}, 0x5244), 2u);  // out dx, ax
  EXPECT_EQ(out_before({0x90, 0xf3, 0x66, 0x6f}, 0x5244), 3u);  // rep outsw
  EXPECT_EQ(out_before({0xf3, 0x66, 0x66, 0x6f}, 0x5244), 4u);  // no further than the bytes
}

TEST(LengthOfOutBefore, IsNothingWhereNoneStands) {
  EXPECT_EQ(out_before({0x90, 0x90, 0xe6, 0x81}, 0x80), 0u);
  EXPECT_EQ(out_before({0x90, 0x90, 0x90, 0x90}, 0x80), 0u);
  EXPECT_EQ(out_before({}, 0x80), 0u);
}

TEST(CurrentExit, RipIsAtTheOutOnAHostThatLeavesItAfterIt) {
  VcpuFakes emulating(true), other(false);
  for (VcpuFakes* fakes : {&emulating, &other}) {
    fakes->put(0x1000, {0x90, 0x90, 0xe6, 0x80});
    leave_by_out(*fakes, 0x1004, 0x80);
  }

  EXPECT_EQ(emulating.exit.registers().rip, 0x1002u);
  EXPECT_EQ(emulating.exit.raw_registers().rip, 0x1004u);
  EXPECT_EQ(other.exit.registers().rip, 0x1004u);
}

TEST(CurrentExit, OnlyThatOutIsLookedFor) {
  VcpuFakes fakes(true);
  fakes.put(0x1000, {0xe6, 0x80, 0xe6, 0x80});
  leave_by_out(fakes, 0x1004, 0x80);

  (void)fakes.exit.registers();

  EXPECT_EQ(fakes.exit.instruction_start(), GuestVirt(0x1002));  // not the one before it, too
}

TEST(CurrentExit, TheKernelsGsBaseIsAskedForOnlyWhereItMayBeTheCpus) {
  VcpuFakes fakes;
  fakes.kvm.msrs[kKernelGsBase] = 0x1234;

  EXPECT_EQ(fakes.exit.registers().kernel_gs_base, 0u);
  EXPECT_EQ(fakes.kvm.msrs_asked, 0u);

  fakes.kvm.area.s.regs.sregs.cs.selector = 0x33;  // user mode
  fakes.exit.begin(2'000'000);
  EXPECT_EQ(fakes.exit.registers().kernel_gs_base, 0x1234u);
  (void)fakes.exit.registers();
  EXPECT_EQ(fakes.kvm.msrs_asked, 1u);  // once an exit
}

TEST(CurrentExit, TheGuestsTscIsTheHostsWithTheOffset) {
  VcpuFakes fakes;
  fakes.kvm.offset = 500;

  EXPECT_EQ(fakes.exit.guest_tsc(), 1'000'500u);

  fakes.kvm.offset = 700;  // the guest has set its TSC
  fakes.exit.begin(1'000'001);
  EXPECT_EQ(fakes.exit.guest_tsc(), 1'000'501u);  // not asked for at each exit
  fakes.exit.begin(1ull << 40);
  EXPECT_EQ(fakes.exit.guest_tsc(), (1ull << 40) + 700);
}

TEST(CurrentExit, AHostThatTellsNoOffsetIsAskedForTheGuestsTsc) {
  VcpuFakes fakes;
  fakes.kvm.offset.reset();
  fakes.kvm.msrs[kTsc] = 0;  // it stands still, so the offset is minus the host's

  const std::uint64_t guest = fakes.exit.guest_tsc();

  EXPECT_GT(guest, 1'000'000u + (1ull << 63));
}

TEST(CurrentExit, ShowsAnEarlierInstructionWhereNothingElseRanSince) {
  constexpr std::array kCpuid{std::byte{0x0f}, std::byte{0xa2}};
  VcpuFakes fakes;
  fakes.put(0x0ffe, {0x0f, 0xa2});

  fakes.exit.show_earlier(900'000, kCpuid);
  EXPECT_EQ(fakes.exit.registers().rip, 0x0ffeu);
  EXPECT_EQ(fakes.exit.guest_tsc(), 900'000u);
  fakes.exit.show_now();

  EXPECT_EQ(fakes.exit.registers().rip, 0x1000u);
  EXPECT_EQ(fakes.exit.guest_tsc(), 1'000'000u);
}

TEST(CurrentExit, StaysWhereItIsWhenAnotherInstructionRanSince) {
  constexpr std::array kCpuid{std::byte{0x0f}, std::byte{0xa2}};
  VcpuFakes fakes;
  fakes.put(0x0ffe, {0x90, 0x90});

  fakes.exit.show_earlier(900'000, kCpuid);

  EXPECT_EQ(fakes.exit.registers().rip, 0x1000u);
}

TEST(CurrentExit, CodeIsReadAsFarAsThereIsMemory) {
  VcpuFakes fakes;
  std::array<std::byte, 16> code{};

  EXPECT_EQ(fakes.exit.read_code(GuestVirt(0x1000), code), 16u);
  EXPECT_EQ(fakes.exit.read_code(GuestVirt(0x1'0000 - 4), code), 4u);
  EXPECT_EQ(fakes.exit.read_code(GuestVirt(0x1'0000), code), 0u);
}

}  // namespace
}  // namespace ringside::vmm::kvm
