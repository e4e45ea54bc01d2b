#include "vmm/kvm/devices/cmos.h"

#include <gtest/gtest.h>

#include <limits>

#include "vmm/kvm/devices/testing/fakes.h"

namespace ringside::vmm::kvm {
namespace {

std::uint64_t at(Cmos& cmos, std::uint8_t index) {
  write_to(cmos, 0, index);
  return read_from(cmos, 1);
}

TEST(Cmos, TellsTheHostsTimeInBcd) {
  Cmos cmos([] { return std::time_t{1'709'210'096}; });  // Thursday 2024-02-29 12:34:56 UTC

  EXPECT_EQ(at(cmos, 0x00), 0x56u);
  EXPECT_EQ(at(cmos, 0x02), 0x34u);
  EXPECT_EQ(at(cmos, 0x04), 0x12u);
  EXPECT_EQ(at(cmos, 0x06), 5u) << "Sunday is 1";
  EXPECT_EQ(at(cmos, 0x07), 0x29u);
  EXPECT_EQ(at(cmos, 0x08), 0x02u);
  EXPECT_EQ(at(cmos, 0x09), 0x24u);
  EXPECT_EQ(at(cmos, 0x32), 0x20u);
}

TEST(Cmos, ShowsYearsOfFourDigitsOnly) {
  std::time_t now = 10'000'000'000;  // 2286-11-20 17:46:40 UTC
  Cmos cmos([&now] { return now; });
  EXPECT_EQ(at(cmos, 0x32), 0x22u);
  EXPECT_EQ(at(cmos, 0x09), 0x86u);
  EXPECT_EQ(at(cmos, 0x02), 0x46u);

  now = std::numeric_limits<std::time_t>::max();
  EXPECT_EQ(at(cmos, 0x32), 0x99u);
  EXPECT_EQ(at(cmos, 0x09), 0x99u);
  EXPECT_EQ(at(cmos, 0x00), 0x59u);

  now = std::numeric_limits<std::time_t>::min();
  EXPECT_EQ(at(cmos, 0x32), 0x19u);
  EXPECT_EQ(at(cmos, 0x09), 0x70u);
}

TEST(Cmos, IsNeverBusyAndHasAGoodBattery) {
  Cmos cmos;
  EXPECT_EQ(at(cmos, 0x0a), 0x26u);
  EXPECT_EQ(at(cmos, 0x0b), 0x02u);
  EXPECT_EQ(at(cmos, 0x0c), 0x00u);
  EXPECT_EQ(at(cmos, 0x0d), 0x80u);
}

TEST(Cmos, KeepsItsRamButNotAClockThatIsSet) {
  Cmos cmos([] { return std::time_t{0}; });
  write_to(cmos, 0, 0x8f);  // with NMIs masked: the shutdown byte
  write_to(cmos, 1, 0x0a);
  write_to(cmos, 0, 0x09);
  write_to(cmos, 1, 0x99);

  EXPECT_EQ(at(cmos, 0x0f), 0x0au);
  EXPECT_EQ(at(cmos, 0x09), 0x70u);
  EXPECT_EQ(read_from(cmos, 0), 0xffu);
}

}  // namespace
}  // namespace ringside::vmm::kvm
