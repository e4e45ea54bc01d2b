#include "vmm/code_writer.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringside::vmm {
namespace {

std::vector<CodeWrite> instruction(std::uint64_t at, std::uint8_t byte, unsigned count) {
  std::vector<CodeWrite> writes;
  for (unsigned n = 0; n < count; ++n) writes.push_back({GuestPhys(at + n), byte, n != 0});
  return writes;
}

std::vector<CodeWrite> operator+(std::vector<CodeWrite> a, const std::vector<CodeWrite>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(CodeWriter, ARunIsNotCutInsideAnInstruction) {
  const auto writes = instruction(0x10, 1, 5) + instruction(0x15, 2, 5) + instruction(0x20, 3, 1);

  EXPECT_EQ(leading_run(writes, 1).size(), 5u);
  EXPECT_EQ(leading_run(writes, 7).size(), 10u);
  EXPECT_EQ(leading_run(writes, 1024).size(), 10u) << "what follows lies elsewhere";
  EXPECT_TRUE(leading_run({}, 7).empty());
}

TEST(CodeWriter, ARunGoesOverAFewBytesThatStayAsTheyAre) {
  std::vector<std::byte> ram(0x3000, std::byte{9});
  const GuestMemory memory({{GuestPhys(0), ram}});
  const auto writes = instruction(0x10, 1, 5) + instruction(0x18, 2, 1) + instruction(0x1a, 3, 2);

  const CodeRun run = bridged_run(memory, writes, 1024);

  EXPECT_EQ(run.at, GuestPhys(0x10));
  EXPECT_EQ(run.writes, writes.size());
  EXPECT_EQ(run.bytes, (std::vector<std::uint8_t>{1, 1, 1, 1, 1, 9, 9, 9, 2, 9, 3, 3}));
}

TEST(CodeWriter, ARunThatGoesOverBytesIsCutWhereItHasTo) {
  std::vector<std::byte> ram(0x3000, std::byte{9});
  const GuestMemory memory({{GuestPhys(0), ram}});
  const auto first = instruction(0x10, 1, 5);
  const auto written = [&](const std::vector<CodeWrite>& writes, std::size_t most) {
    return bridged_run(memory, writes, most).bytes.size();
  };

  EXPECT_EQ(written(first + instruction(0x20, 2, 5), 0x15), 0x15u);
  EXPECT_EQ(written(first + instruction(0x20, 2, 5), 0x14), 5u) << "it would be too long";
  EXPECT_EQ(written(first + instruction(0x200, 2, 1), 1024), 5u) << "it lies far away";
  EXPECT_EQ(written(first + instruction(0x8, 2, 1), 1024), 5u) << "it lies before";
  EXPECT_EQ(written(first + instruction(0x14, 2, 1), 1024), 5u) << "it is written again";
  EXPECT_EQ(written(instruction(0xff0, 1, 1) + instruction(0xfff, 2, 1), 1024), 0x10u);
  EXPECT_EQ(written(instruction(0xff0, 1, 1) + instruction(0x1000, 2, 1), 1024), 1u)
      << "it lies in another page";
  EXPECT_EQ(written(instruction(0x3008, 1, 5) + instruction(0x3010, 2, 1), 1024), 5u)
      << "nobody knows what stands between";
  EXPECT_EQ(bridged_run(memory, {}, 1024).writes, 0u);
}

TEST(CodeWriter, InstructionsAreWrittenAndNothingBesideThem) {
  for (const std::size_t size : {0x40, 0x25}) {  // at the end of memory there are no bytes behind
    std::vector<std::byte> ram(size, std::byte{9});
    GuestMemory memory({{GuestPhys(0), ram}});

    EXPECT_FALSE(write_through(
        memory, instruction(0x10, 1, 5) + instruction(0x15, 2, 1) + instruction(0x20, 3, 5)));

    for (std::size_t n = 0; n < size; ++n) {
      const int expected = n >= 0x10 && n < 0x15   ? 1
                           : n == 0x15             ? 2
                           : n >= 0x20 && n < 0x25 ? 3
                                                   : 9;
      EXPECT_EQ(ram[n], std::byte(expected)) << n;
    }
  }
}

TEST(CodeWriter, TheFirstAddressThatIsRefusedIsTold) {
  std::vector<std::byte> ram(0x20);
  GuestMemory memory({{GuestPhys(0), ram}});

  EXPECT_EQ(write_through(memory, instruction(0x1e, 1, 5) + instruction(0x10, 2, 1)),
            GuestPhys(0x1e));
  EXPECT_EQ(ram[0x10], std::byte{2}) << "the others are tried";
}

}  // namespace
}  // namespace ringside::vmm
