#include "vmm/linux/hardware_breakpoints.h"

#include <gtest/gtest.h>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kDr7 = 0xffff'ffff'8220'0000, kDebugRegisters = 0xffff'ffff'8220'0040;
constexpr std::uint64_t kFirstCpu = 0x10'0000, kSecondCpu = 0x20'0000;  // per-CPU bases
constexpr std::uint64_t kPercpuBases[] = {kFirstCpu, kSecondCpu};

class DebugKernel final : public InertKernel {
 public:
  explicit DebugKernel(std::string_view addresses = "cpu_debugreg") {
    symbols_.add_module(
        {.name = "vmlinux", .text_base = GuestVirt(fakes::kText), .text_size = 0x1000},
        {{.address = GuestVirt(kDr7), .size = 8, .name = "cpu_dr7", .type = 'D', .module = 0},
         {.address = GuestVirt(kDebugRegisters),
          .size = 32,
          .name = addresses,
          .type = 'd',
          .module = 0}});
    symbols_.seal();
  }
};

TEST(HardwareBreakpointsTest, AreThoseThatACpuHasEnabled) {
  fakes::SparseGuest guest;
  const HardwareBreakpoints breakpoints{DebugKernel()};
  EXPECT_TRUE(breakpoints.find(guest, kPercpuBases).empty()) << "nothing can be read";
  for (const std::uint64_t cpu : kPercpuBases) {
    guest.put(kDr7 + cpu, std::uint64_t{0x400});  // reads as one
    for (std::uint64_t n = 0; n < 4; ++n) guest.put(kDebugRegisters + cpu + 8 * n, cpu + n);
  }
  EXPECT_TRUE(breakpoints.find(guest, kPercpuBases).empty());

  guest.put(kDr7 + kFirstCpu,
            std::uint64_t{0b0001'0010});  // the first for all, the third for a task
  guest.put(kDr7 + kSecondCpu, std::uint64_t{0b1100'0000});

  EXPECT_EQ(
      breakpoints.find(guest, kPercpuBases),
      (std::vector{GuestVirt(kFirstCpu), GuestVirt(kFirstCpu + 2), GuestVirt(kSecondCpu + 3)}));
}

TEST(HardwareBreakpointsTest, OfAKernelWithoutThemAreNone) {
  fakes::SparseGuest guest;
  guest.put(kDr7 + kFirstCpu, std::uint64_t{2});
  guest.put(kDebugRegisters + kFirstCpu, std::uint64_t{1});

  EXPECT_TRUE(HardwareBreakpoints{DebugKernel("other")}.find(guest, kPercpuBases).empty());
}

}  // namespace
}  // namespace ringside::guest_linux
