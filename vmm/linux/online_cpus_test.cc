#include "vmm/linux/online_cpus.h"

#include <gtest/gtest.h>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kMask = 0xffff'ffff'8220'0000;

class MaskKernel final : public InertKernel {
 public:
  explicit MaskKernel(std::string_view name) {
    symbols_.add_module(
        {.name = "vmlinux", .text_base = GuestVirt(fakes::kText), .text_size = 0x1000},
        {{.address = GuestVirt(kMask), .size = 1024, .name = name, .type = 'D', .module = 0}});
    symbols_.seal();
  }
};

TEST(OnlineCpusTest, CountsThoseBelowALimit) {
  fakes::SparseGuest guest;
  guest.put(kMask, ~std::uint64_t{0} - 1);  // all but CPU 0
  guest.put(kMask + 8, std::uint64_t{0b1001});
  const OnlineCpus cpus(MaskKernel("__cpu_online_mask"));

  EXPECT_EQ(cpus.count(guest, 0), 0u);
  EXPECT_EQ(cpus.count(guest, 1), 0u);
  EXPECT_EQ(cpus.count(guest, 2), 1u);
  EXPECT_EQ(cpus.count(guest, 64), 63u);
  EXPECT_EQ(cpus.count(guest, 67), 64u);
  EXPECT_EQ(cpus.count(guest, 68), 65u);
  EXPECT_EQ(cpus.has(guest, 67), true);
  EXPECT_EQ(cpus.has(guest, 66), false);
}

TEST(OnlineCpusTest, KnowsNothingOfAMaskThatIsNotThere) {
  fakes::SparseGuest guest;

  EXPECT_FALSE(OnlineCpus(MaskKernel("other")).count(guest, 1).has_value());
  EXPECT_FALSE(OnlineCpus(MaskKernel("__cpu_online_mask")).count(guest, 1).has_value());
}

}  // namespace
}  // namespace ringside::guest_linux
