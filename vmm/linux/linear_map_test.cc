#include "vmm/linux/linear_map.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kSize = 4 << 20, kLinearRoot = 0x1000, kValue = 0x200'008;
constexpr GuestVirt kLinear{0xffff'8880'0000'0000}, kVariable{0xffff'ffff'8000'0010};

/// RAM that counts how often it is read.
class CountedBytes final : public vmm::CopiedBytes {
 public:
  bool read(std::span<const vmm::CopyPart> parts) const override {
    ++reads;
    for (const auto& part : parts) {
      std::memcpy(part.out.data(), bytes.data() + part.offset, part.out.size());
    }
    return true;
  }
  bool write(std::uint64_t, std::span<const std::byte>) override { return false; }
  std::vector<vmm::ByteExtent> extents(vmm::ByteExtent of) const override { return {of}; }
  void put64(std::uint64_t at, std::uint64_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(kSize);
  mutable int reads = 0;
};

/// Its first 2 MiB are the image's, and both are mapped linearly; the second 2 MiB also lie in
/// between, at an address where the linear map has no RAM.
class SmallKernel final : public InertKernel {
 public:
  SmallKernel() : InertKernel(GuestPhys(kLinearRoot)) {
    Module vmlinux;
    vmlinux.name = "vmlinux";
    symbols_.add_module(vmlinux, {{kVariable, 8, "page_offset_base", 'd', 0}});
    symbols_.seal();
  }
};

class LinearMap : public testing::Test {
 protected:
  LinearMap() {
    ram->put64(kLinearRoot + 8 * 273, 0x2003);  // the linear map's
    ram->put64(0x2000, 0x3003);
    ram->put64(0x3000, 0x000083);
    ram->put64(0x3008, 0x200083);
    ram->put64(0x2000 + 8 * 1, 0x4003);  // 1 GiB further on: no RAM of the map
    ram->put64(0x4000, 0x200083);
    ram->put64(kLinearRoot + 8 * 511, 0x5003);  // the image's
    ram->put64(0x5000 + 8 * 510, 0x6003);
    ram->put64(0x6000, 0x000083);
    ram->put64(0x10, kLinear.raw());  // page_offset_base
    ram->put64(kValue, 4711);
  }

  std::shared_ptr<CountedBytes> ram = std::make_shared<CountedBytes>();
  vmm::GuestMemory memory = vmm::GuestMemory::by_copies({{GuestPhys(0), kSize, ram, 0}});
  SmallKernel kernel;
};

TEST_F(LinearMap, IsReadWithoutWalks) {
  const auto linear = find_linear_map(memory, kernel);
  ASSERT_EQ(linear, kLinear);
  const LinearMapReader reader(memory, kernel.table(), linear);
  ram->reads = 0;

  EXPECT_EQ(load<std::uint64_t>(reader, kLinear.wrapping_add(kValue)), 4711U);

  EXPECT_EQ(ram->reads, 1);
}

TEST_F(LinearMap, AllElseIsWalkedTo) {
  const LinearMapReader reader(memory, kernel.table(), find_linear_map(memory, kernel));
  const GuestVirt elsewhere = kLinear.wrapping_add((1 << 30) + kValue - 0x200'000);

  EXPECT_EQ(load<std::uint64_t>(reader, elsewhere), 4711U);
  EXPECT_EQ(load<std::uint64_t>(reader, kVariable), kLinear.raw());
  const auto nowhere = load<std::uint64_t>(reader, kLinear.wrapping_add(2ULL << 30));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().address, kLinear.wrapping_add(2ULL << 30).raw());
}

TEST_F(LinearMap, OtherTablesEndIt) {
  LinearMapReader reader(memory, kernel.table(), find_linear_map(memory, kernel));
  reader.set_table({GuestPhys(0x7000), 4, 0});

  EXPECT_FALSE(load<std::uint64_t>(reader, kLinear.wrapping_add(kValue)));
}

TEST_F(LinearMap, IsNotBelievedWhereTheTablesSayOtherwise) {
  ram->put64(0x10, kLinear.wrapping_add(1 << 30).raw());
  EXPECT_EQ(find_linear_map(memory, kernel), std::nullopt);
  ram->put64(0x10, kLinear.raw() + 8);
  EXPECT_EQ(find_linear_map(memory, kernel), std::nullopt);
  ram->put64(0x10, 0x1000);
  EXPECT_EQ(find_linear_map(memory, kernel), std::nullopt);
  ram->put64(0x10, ~std::uint64_t{0xfff});
  EXPECT_EQ(find_linear_map(memory, kernel), std::nullopt);
}

TEST_F(LinearMap, IsNotUsedWhereRamIsMapped) {
  vmm::GuestMemory mapped{{{GuestPhys(0), ram->bytes}}};
  EXPECT_EQ(find_linear_map(mapped, kernel), std::nullopt);
}

}  // namespace
}  // namespace ringside::guest_linux
