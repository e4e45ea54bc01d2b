#include "cli/printf.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace ringside::cli {
namespace {

using dif::ValueKind;
using dif::ValueType;

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
    return parsed->print(values, aggregates, [](GuestVirt at) {
      return at.raw() == 0x1000 ? "vmlinux`vfs_read" : "?";
    });
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
  EXPECT_EQ(Arguments().text("a\tb\x01\"").print("%S"), "a\\tb\\001\\\"");
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

TEST(Printf, UnsupportedConversionsAreRefused) {
  EXPECT_EQ(Arguments().print("%k"), "format conversion %k is not supported yet");
}

TEST(Printf, AggregationConversionsTakeAggregates) {
  dif::Aggregation count, distribution;
  distribution.function = dif::AggregateFunction::Quantize;
  const std::int64_t words[] = {12};
  std::vector<std::int64_t> buckets(127);
  const AggregateValue values[] = {{&count, words, 4}, {&distribution, buckets, 1}};

  EXPECT_EQ(Arguments().text("cat").print("%s %@5d %@d\n", std::span(values).first(1)),
            "cat     3 3\n");
  EXPECT_EQ(Arguments().print("%@d%@d", values),
            "3\n           value  ------------- Distribution ------------- count    \n");
}

}  // namespace
}  // namespace ringside::cli
