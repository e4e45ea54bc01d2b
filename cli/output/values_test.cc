#include "cli/output/values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace ringside::cli {
namespace {

using dif::ValueKind;
using dif::ValueType;

template <class T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::vector<std::byte> text_bytes(std::string_view text, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

class ColumnNames : public CodeNames {
 public:
  std::string describe(GuestVirt at) const override {
    return at.raw() == 0x1000 ? "vmlinux`vfs_read+0x10" : "0x2000";
  }
};

std::string column(const ValueType& type, Bytes bytes, const ColumnStyle& style) {
  std::string text;
  append_column(text, {type, bytes}, style, ColumnNames());
  return text;
}

const ColumnStyle kDefault{};
const ColumnStyle kQuiet{true, false, 33};

TEST(Column, IntegersHaveAWidthByTheirSize) {
  const ValueType integer{};

  EXPECT_EQ(column(integer, bytes_of<std::int64_t>(-5), kDefault), "               -5");
  EXPECT_EQ(column(integer, bytes_of<std::int32_t>(1), kDefault), "        1");
  EXPECT_EQ(column(integer, bytes_of<std::int16_t>(-1), kDefault), " 65535");
  EXPECT_EQ(column(integer, bytes_of<std::int8_t>(-1), kDefault), " 255");
  EXPECT_EQ(column({ValueKind::Integer, false, 4}, bytes_of<std::uint32_t>(UINT32_MAX), kDefault),
            "       -1");
  EXPECT_EQ(column(integer, bytes_of<std::int8_t>(7), kDefault), "   7");
  EXPECT_EQ(column(integer, bytes_of<std::int32_t>(1), kQuiet), "1");
}

TEST(Column, StringsArePaddedAndEndAtTheirNul) {
  const ValueType string{ValueKind::String, false, 0};
  std::vector<std::byte> bytes = text_bytes("bash", 256);
  bytes[5] = std::byte{0x80};  // left over from an earlier, longer one

  EXPECT_EQ(column(string, bytes, kDefault), "  bash                             ");
  EXPECT_EQ(column(string, bytes, kQuiet), "bash");
  EXPECT_EQ(column(string, bytes, {false, false, 50}),
            "  bash                                              ");
}

TEST(Column, BytesThatAreTextPrintAsText) {
  const ValueType bytes{ValueKind::Bytes, false, 16};

  EXPECT_EQ(column(bytes, text_bytes("swapper/0", 16), kQuiet), "swapper/0");
}

TEST(Column, OtherBytesAreDumped) {
  const ValueType type{ValueKind::Bytes, false, 18};
  std::vector<std::byte> bytes = text_bytes("ab", 18);
  bytes[17] = std::byte{0xff};

  EXPECT_EQ(column(type, bytes, kDefault), R"(
             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 61 62 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ab..............
        10: 00 ff                                            ..
)");
}

TEST(Column, RawBytesForcesTheDump) {
  const ValueType string{ValueKind::String, false, 0};

  EXPECT_EQ(column(string, text_bytes("hi", 3), {true, true, 33}), R"(
             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 68 69 00                                         hi.
)");
}

TEST(Column, NarrowUnsignedNumbersStayPositive) {
  EXPECT_EQ(column({ValueKind::Integer, false, 2}, bytes_of<std::int16_t>(-1), kQuiet), "65535");
  EXPECT_EQ(column({ValueKind::Integer, false, 1}, bytes_of<std::int8_t>(-1), kDefault), " 255");
  EXPECT_EQ(column({ValueKind::Integer, false, 4}, bytes_of<std::int32_t>(-1), kQuiet), "-1");
  EXPECT_EQ(column({ValueKind::Integer, false, 8}, bytes_of<std::int64_t>(-1), kQuiet), "-1");
}

TEST(Column, SymbolsLoseTheirOffsetAndFillAColumn) {
  const auto at = bytes_of<std::uint64_t>(0x1000);
  const std::string padding(50 - 16, ' ');

  EXPECT_EQ(column({ValueKind::KernelSymbol, false, 8}, at, kQuiet),
            "  vmlinux`vfs_read" + padding);
  EXPECT_EQ(column({ValueKind::KernelModule, false, 8}, at, kQuiet),
            "  vmlinux" + std::string(43, ' '));
}

TEST(Column, StacksHaveALineForEachFrameUpToTheFirstZero) {
  std::vector<std::byte> frames;
  for (const std::uint64_t frame : {0x1000, 0x2000, 0, 0x1000}) {
    for (const std::byte byte : bytes_of(frame)) frames.push_back(byte);
  }

  EXPECT_EQ(column({ValueKind::KernelStack, false, 32}, frames, {true, false, 33, 2}),
            "\n  vmlinux`vfs_read+0x10\n  0x2000\n");
  EXPECT_EQ(column({ValueKind::UserStack, false, 32}, frames, kDefault),
            "\n              0x2000\n");
}

TEST(CodeNames, AreSplitIntoTheirParts) {
  const CodeName name = split_code_name("vmlinux`vfs_read+0x1f");

  EXPECT_EQ(name.module, "vmlinux");
  EXPECT_EQ(name.symbol, "vfs_read");
  EXPECT_EQ(name.offset, 0x1fu);
  EXPECT_EQ(split_code_name("ext4`0xffffffffc0001000").symbol, "");
  EXPECT_EQ(split_code_name("0xffffffffc0001000").module, "");
  EXPECT_EQ(module_of("0x10"), "0x10");
}

TEST(Values, AreExtendedByTheirSize) {
  const std::vector<std::byte> minus_one = bytes_of<std::int16_t>(-1);

  EXPECT_EQ(signed_value(minus_one), -1);
  EXPECT_EQ(unsigned_value(minus_one), 0xffffu);
  EXPECT_EQ(signed_value({}), 0);
}

}  // namespace
}  // namespace ringside::cli
