#include "vmm/kvm/devices/bus.h"

#include <gtest/gtest.h>

#include "vmm/kvm/devices/testing/fakes.h"

namespace ringside::vmm::kvm {
namespace {

/// Answers each byte with its offset, and remembers the last write.
class Echo final : public Device {
 public:
  void read(std::uint64_t offset, std::span<std::byte> data) override {
    for (std::byte& byte : data) byte = std::byte(offset++);
  }
  void write(std::uint64_t offset, std::span<const std::byte> data) override {
    written_at = offset;
    written = data.size();
  }
  std::uint64_t written_at = 99;
  std::size_t written = 0;
};

std::uint64_t read(const Bus& bus, std::uint64_t at, std::size_t size) {
  std::array<std::byte, 8> bytes{};
  bus.read(at, std::span(bytes).first(size));
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

TEST(Bus, GivesTheDeviceItsOwnOffsets) {
  Bus bus;
  Echo low, high;
  ASSERT_TRUE(bus.add(0x100, 8, high));
  ASSERT_TRUE(bus.add(0x40, 4, low));
  const std::array<std::byte, 2> two{};

  bus.write(0x42, two);

  EXPECT_EQ(low.written_at, 2u);
  EXPECT_EQ(low.written, 2u);
  EXPECT_EQ(high.written, 0u);
  EXPECT_EQ(read(bus, 0x104, 4), 0x07060504u);
}

TEST(Bus, ReadsAsAllOnesWhereNobodyIs) {
  Bus bus;
  Echo device;
  EXPECT_EQ(read(bus, 0, 1), 0xffu) << "an empty bus";
  ASSERT_TRUE(bus.add(0x100, 4, device));

  EXPECT_EQ(read(bus, 0xff, 1), 0xffu);
  EXPECT_EQ(read(bus, 0xff, 2), 0xffffu) << "half before the range";
  EXPECT_EQ(read(bus, 0x103, 2), 0xffffu) << "half after it";
  EXPECT_EQ(read(bus, 0x104, 4), 0xffff'ffffu);
  bus.write(0x103, std::array<std::byte, 2>{});
  EXPECT_EQ(device.written, 0u);
}

TEST(Bus, RefusesRangesThatOverlapWrapOrAreEmpty) {
  Bus bus;
  Echo device;
  ASSERT_TRUE(bus.add(0x100, 0x10, device));

  EXPECT_FALSE(bus.add(0x200, 0, device));
  EXPECT_FALSE(bus.add(UINT64_MAX, 2, device));
  EXPECT_FALSE(bus.add(0xff, 2, device));
  EXPECT_FALSE(bus.add(0x10f, 1, device));
  EXPECT_FALSE(bus.add(0x80, 0x100, device));
  EXPECT_TRUE(bus.add(0xff, 1, device));
  EXPECT_TRUE(bus.add(0x110, 1, device));
  EXPECT_TRUE(bus.add(UINT64_MAX, 1, device));
  EXPECT_EQ(read(bus, UINT64_MAX, 1), 0u);
  EXPECT_EQ(read(bus, UINT64_MAX, 2), 0xffffu);
}

}  // namespace
}  // namespace ringside::vmm::kvm
