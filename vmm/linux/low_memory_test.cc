#include "vmm/linux/low_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::guest_linux {
namespace {

// A kernel of one large page, mapped at its own region, with its variables and struct pages in it.
constexpr std::uint64_t kRam = 4 << 20, kLowImage = 2 << 20;
constexpr GuestPhys kLowRoot{kLowImage + 0x1000}, kPud{kLowImage + 0x2000},
    kPmd{kLowImage + 0x3000};
constexpr std::uint64_t kLowText = 0xffff'ffff'8000'0000 + kLowImage;
constexpr std::uint64_t kHeaderVariable = kLowText + 0x4000, kArrayVariable = kLowText + 0x4008;
constexpr std::uint64_t kPages = kLowText + 0x10000, kPageSize = 64;
constexpr unsigned kReservedBit = 10;

class LowKernel final : public InertKernel {
 public:
  LowKernel() : InertKernel(kLowRoot), memory({{GuestPhys(0), ram}}) {
    put64(kLowRoot.raw() + 8 * 511, kPud.raw() | 3);
    put64(kPud.raw() + 8 * 510, kPmd.raw() | 3);
    put64(kPmd.raw() + 8 * 0, 0x83);  // the first 2 MiB, for the trampoline
    put64(kPmd.raw() + 8 * 1, kLowImage | 0x83);
    put64(physical(kHeaderVariable), 0xffff'ffff'8000'0000 + 0x98000);
    put64(physical(kArrayVariable), kPages);
    for (std::uint64_t page = 0; page < 256; ++page) reserve(page * 4096, true);
    symbols_.add_module({.name = "vmlinux", .text_base = GuestVirt(kLowText), .text_size = 0x1000},
                        {{.address = GuestVirt(kHeaderVariable),
                          .size = 8,
                          .name = "real_mode_header",
                          .type = 'D',
                          .module = 0},
                         {.address = GuestVirt(kArrayVariable),
                          .size = 8,
                          .name = "vmemmap_base",
                          .type = 'D',
                          .module = 0}});
    symbols_.seal();
  }
  void add_types() {
    const std::array members = {Member{"flags", *types_.find("unsigned long"), 64, 0}};
    types_.index(types_.add_struct(TypeKind::Struct, "page", kPageSize, members));
    const std::array flags = {Enumerator{"PG_reserved", kReservedBit}};
    types_.index(types_.add_enum("pageflags", 4, false, flags));
  }

  static std::uint64_t physical(std::uint64_t at) { return at - 0xffff'ffff'8000'0000; }
  void put64(std::uint64_t at, std::uint64_t value) {
    std::memcpy(ram.data() + at, &value, sizeof value);
  }
  void reserve(std::uint64_t page, bool reserved) {
    put64(physical(kPages) + page / 4096 * kPageSize + 8,
          ~(std::uint64_t{1} << kReservedBit) | (std::uint64_t{reserved} << kReservedBit));
  }

  std::vector<std::byte> ram = std::vector<std::byte>(kRam);
  vmm::GuestMemory memory;
};

TEST(LowMemory, IsAllThatIsZeroBelowTheTrampoline) {
  LowKernel kernel;
  kernel.add_types();

  const auto found = find_low_memory(kernel.memory, kernel);

  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->base.raw(), 0x1000u) << "page 0 is the firmware's";
  EXPECT_EQ(found->size, 0x97000u);
}

TEST(LowMemory, IsTheLongestPieceBetweenPagesThatSomebodyUses) {
  LowKernel kernel;
  kernel.add_types();
  kernel.ram[0x20fff] = std::byte{1};
  kernel.reserve(0x70000, false);  // the allocator may hand it out

  const auto found = find_low_memory(kernel.memory, kernel);

  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->base.raw(), 0x21000u);
  EXPECT_EQ(found->size, 0x4f000u);
}

TEST(LowMemory, IsRefusedWhereItIsTooSmall) {
  LowKernel kernel;
  kernel.add_types();
  for (std::uint64_t page = 0; page < 0x98000; page += 60 << 10) kernel.reserve(page, false);

  const auto found = find_low_memory(kernel.memory, kernel);

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::Unsupported);
  EXPECT_NE(found.error().message.find("in one piece that nobody uses"), std::string::npos);
}

TEST(LowMemory, IsRefusedWhereTheKernelDoesNotSay) {
  LowKernel without_types;
  const auto unknown = find_low_memory(without_types.memory, without_types);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("struct page"), std::string::npos);

  LowKernel lost;
  lost.add_types();
  lost.put64(LowKernel::physical(kHeaderVariable), 0x1234);
  EXPECT_FALSE(find_low_memory(lost.memory, lost)) << "the trampoline is nowhere";
}

TEST(LowMemory, IsKeptWhereTheKernelKeepsEveryPage) {
  LowKernel kernel;
  kernel.add_types();
  const auto kept = [&kernel](std::uint64_t at, std::uint64_t size) {
    return check_kept(kernel.memory, kernel, {GuestPhys(at), size}).has_value();
  };

  EXPECT_TRUE(kept(0x21000, 0x77000));
  EXPECT_FALSE(kept(0x21000, 0x78000)) << "the trampoline is among them";
  EXPECT_FALSE(kept(0, 0x1000)) << "the firmware's";
  EXPECT_FALSE(kept(kRam - 0x1000, 0x2000)) << "no RAM";
  EXPECT_FALSE(kept(0x21000, ~std::uint64_t{0}));
  kernel.reserve(0x30000, false);
  EXPECT_FALSE(kept(0x21000, 0x77000)) << "the allocator may have handed it out";
  EXPECT_TRUE(kept(0x31000, 0x10000));
}

}  // namespace
}  // namespace ringside::guest_linux
