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
