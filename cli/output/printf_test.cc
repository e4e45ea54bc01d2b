#include "cli/output/printf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace ringside::cli {
namespace {

using dif::ValueKind;
using dif::ValueType;

class PrintfNames : public CodeNames {
 public:
  std::string describe(GuestVirt at) const override {
    return at.raw() == 0x1000 ? "vmlinux`vfs_read" : "vmlinux`vfs_read+0x8";
  }
  std::string describe_user(std::uint64_t pid, GuestVirt at) const override {
    return fmt::format("{}`{:x}", pid, at.raw());
  }
};

/// Keeps the bytes of values alive while they are printed.
class Arguments {
 public:
  template <class T>
  Arguments& integer(T value) {
    std::vector<std::byte>& bytes = storage_.emplace_back(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return with({ValueKind::Integer, true, sizeof value});
  }
  Arguments& text(std::string_view value) {
    std::vector<std::byte>& bytes = storage_.emplace_back(256);
    std::memcpy(bytes.data(), value.data(), value.size());
    return with({ValueKind::String, false, 0});
  }

  std::string print(std::string_view format,
                    std::span<const AggregateValue> aggregates = {}) const {
    std::vector<Value> values;
    for (std::size_t i = 0; i < types_.size(); ++i) values.push_back({types_[i], storage_[i]});
    const auto parsed = Format::parse(format);
    if (!parsed) return parsed.error().message;
    std::string out;
    parsed->print(out, values, aggregates, PrintfNames());
    return out;
  }

  Arguments& words(ValueKind kind, const std::vector<std::uint64_t>& values) {
    std::vector<std::byte>& bytes = storage_.emplace_back(values.size() * 8);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return with({kind, false, static_cast<std::uint32_t>(bytes.size())});
  }
  Arguments& bytes(std::string_view value) {
    std::vector<std::byte>& bytes = storage_.emplace_back(value.size());
    std::memcpy(bytes.data(), value.data(), value.size());
    return with({ValueKind::Bytes, false, static_cast<std::uint32_t>(value.size())});
  }

 private:
  Arguments& with(ValueType type) {
    types_.push_back(type);
    return *this;
  }
  std::vector<std::vector<std::byte>> storage_;
  std::vector<ValueType> types_;
};

TEST(Printf, IntegersTakeTheirSizeFromTheValue) {
  Arguments narrow, wide;
  narrow.integer<std::int32_t>(-1).integer<std::int32_t>(-1).integer<std::int8_t>(-1);
  wide.integer<std::int64_t>(-1).integer<std::int64_t>(-1);

  EXPECT_EQ(narrow.print("%d %x %u"), "-1 ffffffff 255");
  EXPECT_EQ(wide.print("%i %X"), "-1 FFFFFFFFFFFFFFFF");
  EXPECT_EQ(narrow.print("%lld %hx"), "-1 ffffffff");
}

TEST(Printf, FlagsWidthsAndPrecisionsWorkAsInC) {
  Arguments arguments;
  arguments.integer(42).integer(42).integer(42).integer(42);

  EXPECT_EQ(arguments.print("[%5d] [%-5d] [%05d] [%+.4d]"), "[   42] [42   ] [00042] [+0042]");
  EXPECT_EQ(Arguments().integer(255).integer(8).print("%#x %#o"), "0xff 010");
  EXPECT_EQ(Arguments().text("truncated").print("[%-6.3s]"), "[tru   ]");
}

TEST(Printf, StarsConsumeArguments) {
  EXPECT_EQ(Arguments().integer(6).integer(2).text("abc").print("[%*.*s]"), "[    ab]");
  EXPECT_EQ(Arguments().integer(-4).integer(1).print("[%*d]"), "[1   ]");
}

TEST(Printf, StringsEndAtTheirNul) {
  EXPECT_EQ(Arguments().text("cat").print("%s|%%|"), "cat|%|");
  EXPECT_EQ(Arguments().text("a\tb\x01\"").print("%S"), "a\\tb\\001\\\"\\0");
}

TEST(Printf, CharactersAndAddresses) {
  EXPECT_EQ(Arguments().integer<std::int8_t>('x').print("%c"), "x");
  EXPECT_EQ(Arguments().integer<std::int8_t>('\n').print("%C"), "\\n");
  EXPECT_EQ(Arguments().integer<std::uint64_t>(0x1000).print("%a"), "vmlinux`vfs_read");
  EXPECT_EQ(Arguments().integer<std::uint64_t>(0xffffffff81000000).print("%p"), "ffffffff81000000");
}

TEST(Printf, DatesAreLocalTime) {
  setenv("TZ", "UTC", 1);
  tzset();

  EXPECT_EQ(Arguments().integer<std::int64_t>(1'700'000'000'000'000'000).print("%Y"),
            "2023 Nov 14 22:13:20");
}

TEST(Printf, MissingArgumentsPrintNothing) {
  EXPECT_EQ(Arguments().print("a%db%sc"), "abc");
}

TEST(Printf, StacksAreLinesIndentedByALeftAlignedWidth) {
  Arguments kernel, user;
  kernel.words(ValueKind::KernelStack, {0x1000, 0x1008, 0, 0x1000});
  user.words(ValueKind::UserStack, {42, 0x10, 0});

  EXPECT_EQ(kernel.print("%k"), "\nvmlinux`vfs_read\nvmlinux`vfs_read+0x8\n");
  EXPECT_EQ(kernel.print("%-4k"), "\n    vmlinux`vfs_read\n    vmlinux`vfs_read+0x8\n");
  EXPECT_EQ(user.print("%k"), "\n42`10\n");
}

TEST(Printf, SymbolsPrintUnderAnyTextConversion) {
  EXPECT_EQ(Arguments().words(ValueKind::KernelSymbol, {0x1008}).print("[%a]"),
            "[vmlinux`vfs_read]");
  EXPECT_EQ(Arguments().words(ValueKind::KernelModule, {0x1008}).print("%s"), "vmlinux");
  EXPECT_EQ(Arguments().words(ValueKind::UserAddress, {7, 0x20}).print("%A"), "7`20");
  EXPECT_EQ(Arguments().integer<std::uint64_t>(0x20).print("%A"), "0`20");
}

TEST(Printf, NetworkAndFloatingPointValues) {
  EXPECT_EQ(Arguments().bytes(std::string_view("\x7f\0\0\1", 4)).print("%I"), "127.0.0.1");
  EXPECT_EQ(Arguments().bytes(std::string(15, '\0') + '\1').print("%I"), "::1");
  EXPECT_EQ(Arguments().text("10.0.0.1").print("%12I"), "    10.0.0.1");
  EXPECT_EQ(Arguments().integer<std::uint16_t>(64999).print("%P"), "64999");
  EXPECT_EQ(Arguments().integer(__builtin_bit_cast(std::uint64_t, 2.5)).print("%.2f %%"), "2.50 %");
  EXPECT_EQ(Arguments().integer(__builtin_bit_cast(std::uint32_t, 0.5F)).print("%e"),
            "5.000000e-01");
}

TEST(Printf, WideCharactersBecomeUtf8) {
  EXPECT_EQ(Arguments().integer<std::uint32_t>(0xe9).print("%wc"), "\xc3\xa9");
  EXPECT_EQ(Arguments().bytes(std::string_view("a\0\0\0\xac\x20\0\0\0\0\0\0", 12)).print("%ws"),
            "a\xe2\x82\xac");
  EXPECT_EQ(Arguments().integer<std::uint32_t>(0xd800).print("%wc"), "\xef\xbf\xbd");
}

TEST(Printf, CharacterZeroIsPrinted) {
  EXPECT_EQ(Arguments().integer<std::int8_t>(0).print("[%c]"), std::string("[\0]", 3));
  EXPECT_EQ(Arguments().integer<std::int8_t>('x').print("[%3c]"), "[  x]");
  EXPECT_EQ(Arguments().integer<std::int8_t>(0).print("%C"), "\\0");
}

TEST(Printf, AggregationConversionsTakeAggregates) {
  dif::Aggregation count, distribution;
  distribution.function = dif::AggregateFunction::Quantize;
  const std::int64_t words[] = {12};
  std::vector<std::int64_t> buckets(127);
  const AggregateValue values[] = {{&count, words, 4}, {&distribution, buckets, 1}};

  EXPECT_EQ(Arguments().text("cat").print("%s %@5d %@d\n", std::span(values).first(1)),
            "cat     3 3\n");
  EXPECT_TRUE(Arguments()
                  .print("%@d%@d", values)
                  .starts_with("3\n           value  ------------- Distribution "));
}

}  // namespace
}  // namespace ringside::cli
