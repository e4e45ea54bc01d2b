#include "vmm/kvm/boot/aml.h"

#include <gtest/gtest.h>

namespace ringside::vmm::kvm::aml {
namespace {

TEST(Aml, IntegersTakeAsFewBytesAsTheyCan) {
  EXPECT_EQ(integer(0), (Code{0x00}));
  EXPECT_EQ(integer(1), (Code{0x01}));
  EXPECT_EQ(integer(2), (Code{0x0a, 2}));
  EXPECT_EQ(integer(0x1234), (Code{0x0b, 0x34, 0x12}));
  EXPECT_EQ(integer(0x12345678), (Code{0x0c, 0x78, 0x56, 0x34, 0x12}));
  EXPECT_EQ(integer(0x1'0000'0000), (Code{0x0e, 0, 0, 0, 0, 1, 0, 0, 0}));
}

TEST(Aml, AnEisaIdentifierIsPacked) {
  EXPECT_EQ(eisa_id("PNP0501"), (Code{0x0c, 0x41, 0xd0, 0x05, 0x01}));
  EXPECT_EQ(eisa_id("PNP0C0A"), (Code{0x0c, 0x41, 0xd0, 0x0c, 0x0a}));
}

/// A package of `bytes` bytes after its length; the length field alone matters here.
Code package_of(std::size_t bytes) {
  return package({Code(bytes - 1, 0)});  // less the byte that counts the elements
}

TEST(Aml, ALengthCountsItselfAndGrowsWhenItMust) {
  EXPECT_EQ(package_of(62)[1], 63);
  const Code two = package_of(63);
  EXPECT_EQ(two[1], 0x40 | (65 & 0xf));
  EXPECT_EQ(two[2], 65 >> 4);
  const Code most_of_two = package_of(4093);
  EXPECT_EQ(most_of_two[1], 0x40 | 0xf);
  EXPECT_EQ(most_of_two[2], 0xff);
  const Code three = package_of(4094);  // 4097 with its three bytes of length
  EXPECT_EQ(three[1], 0x80 | 1);
  EXPECT_EQ(three[2], 0x00);
  EXPECT_EQ(three[3], 0x01);
}

TEST(Aml, ADeviceHoldsItsNames) {
  const Code code = device("COM1", {name("_UID", integer(1))});

  EXPECT_EQ(code, (Code{0x5b, 0x82, 11, 'C', 'O', 'M', '1', 0x08, '_', 'U', 'I', 'D', 0x01}));
}

TEST(Aml, ResourcesAreABufferThatEndsInATag) {
  const Code code = resources({isa_irq(4)});

  EXPECT_EQ(code, (Code{0x11, 8, 0x0a, 5, 0x22, 0x10, 0x00, 0x79, 0x00}));
}

TEST(Aml, DescriptorsCarryPortsMemoryAndInterrupts) {
  EXPECT_EQ(io(0x3f8, 8), (Code{0x47, 1, 0xf8, 3, 0xf8, 3, 1, 8}));
  EXPECT_EQ(memory32_fixed(0xd0000000, 0x200), (Code{0x86, 9, 0, 1, 0, 0, 0, 0xd0, 0, 2, 0, 0}));
  EXPECT_EQ(interrupt(17), (Code{0x89, 6, 0, 1, 1, 17, 0, 0, 0}));
}

}  // namespace
}  // namespace ringside::vmm::kvm::aml
