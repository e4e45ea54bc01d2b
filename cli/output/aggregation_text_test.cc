#include "cli/output/aggregation_text.h"

#include <gtest/gtest.h>

#include <cstring>

#include "cli/output/fake_program_for_tests.h"
#include "dif/program/aggregate_function.h"

namespace ringside::cli {
namespace {

using dif::AggregateFunction;
using dif::ValueKind;
using dif::ValueType;

class KeyNames : public CodeNames {
 public:
  std::string describe(GuestVirt at) const override {
    return at.raw() == 0x1000 ? "vmlinux`vfs_read+0x10" : "vmlinux`read";
  }
};

class Table {
 public:
  explicit Table(AggregateFunction function, std::vector<ValueType> keys = {},
                 std::uint64_t parameters = 0) {
    definitions_.resize(1);
    definitions_[0].function = function;
    definitions_[0].keys = std::move(keys);
    definitions_[0].parameters = parameters;
    table_.emplace(definitions_);
  }
  Table& add(const std::string& key, std::vector<std::int64_t> words) {
    dif::AggregateEntry entry;
    const auto bytes = std::as_bytes(std::span(key));
    entry.key.assign(bytes.begin(), bytes.end());
    entry.words = std::move(words);
    table_->merge(std::span(&entry, 1));
    return *this;
  }
  std::string print(const Settings& settings = {}) const {
    constexpr std::uint32_t kFirst[] = {0};
    std::string text;
    append_aggregations(text, *table_, kFirst, settings, KeyNames());
    return text;
  }

 private:
  std::vector<dif::Aggregation> definitions_;
  std::optional<Aggregations> table_;
};

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

using testing_support::kString;

std::vector<std::int64_t> quantized(std::initializer_list<std::pair<int, int>> counts) {
  std::vector<std::int64_t> words(127);
  for (const auto& [bucket, count] : counts) words[static_cast<std::size_t>(bucket)] = count;
  return words;
}

TEST(AggregationText, KeysHaveColumnsByTheirSize) {
  Table table(AggregateFunction::Sum, {{ValueKind::Integer, true, 8},
                                       {ValueKind::Integer, true, 4},
                                       {ValueKind::Integer, true, 2},
                                       {ValueKind::Integer, true, 1},
                                       kString});
  table.add(raw<std::int64_t>(-1) + raw(2) + raw<std::int16_t>(3) + raw<std::int8_t>(4) +
                std::string("ab\0", 3),
            {-7});

  EXPECT_EQ(table.print(), "               -1        2     3   4  ab" + std::string(48, ' ') +
                               "               -7\n");
}

TEST(AggregationText, KeysOfOneAndTwoBytesHaveNoSign) {
  Table table(AggregateFunction::Count,
              {{ValueKind::Integer, true, 1}, {ValueKind::Integer, true, 2}});
  table.add(raw<std::int8_t>(-1) + raw<std::int16_t>(-2), {3});
  Settings histogram;
  histogram.aggregation_histogram = true;

  EXPECT_EQ(table.print(), " 255 65534                3\n");
  EXPECT_NE(table.print(histogram).find(" 255 65534 |@"), std::string::npos);
}

TEST(AggregationText, AStackIsAKeyOfSeveralLines) {
  Table table(AggregateFunction::Count, {{ValueKind::KernelStack, false, 24}});
  table.add(raw<std::uint64_t>(0x1000) + raw<std::uint64_t>(0x2000) + raw<std::uint64_t>(0), {5});

  EXPECT_EQ(table.print(),
            "\n              vmlinux`vfs_read+0x10\n              vmlinux`read\n"
            "                5\n");
}

TEST(AggregationText, SymbolKeysFillAColumn) {
  Table table(AggregateFunction::Count, {{ValueKind::KernelSymbol, false, 8}});
  table.add(raw<std::uint64_t>(0x1000), {5});

  EXPECT_EQ(table.print(), "  vmlinux`vfs_read" + std::string(34, ' ') + "                5\n");
}

TEST(AggregationText, ADistributionFollowsItsKey) {
  Table table(AggregateFunction::Quantize, {{ValueKind::Integer, true, 4}});
  table.add(raw(1), quantized({{63, 2}}));

  EXPECT_EQ(table.print(), R"(        1
           value  ------------- Distribution ------------- count    
              -1 |                                         0        
               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2        
               1 |                                         0        

)");
}

TEST(AggregationText, AgghistDrawsCounts) {
  Settings settings;
  settings.aggregation_histogram = true;
  Table table(AggregateFunction::Count, {kString});
  table.add(std::string("ls\0", 3), {1}).add(std::string("bash\0", 5), {3});

  EXPECT_EQ(table.print(settings),
            "\n              key  ------------- Distribution ------------- count    \n"
            "               ls |@@@@@@@@@@                               1        \n"
            "             bash |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        \n");
}

TEST(AggregationText, AggpackIsALineAKey) {
  Settings settings;
  settings.aggregation_pack = true;
  Table table(AggregateFunction::Quantize, {kString});
  table.add(std::string("ls\0", 3), quantized({{64, 1}}))
      .add(std::string("cp\0", 3), quantized({{65, 4}, {66, 4}}));

  EXPECT_EQ(table.print(settings),
            "\n              key  min .-----. max  | count\n"
            "               ls    0 : X   : 8    | 1\n"
            "               cp    0 :  xx : 8    | 8\n");
}

TEST(AggregationText, AggpackWithoutKeysHasNoKeyColumn) {
  Settings settings;
  settings.aggregation_pack = settings.utf8 = settings.aggregation_zoom = true;
  Table table(AggregateFunction::Quantize);
  table.add("", quantized({{64, 1}}));

  EXPECT_EQ(table.print(settings),
            "\n  min .---. max  | count\n"
            "    0 : \xe2\x96\x88 : 2    | 1\n");
}

TEST(AggregationText, AggpackShowsNothingBelowZeroWhereAllIsAbove) {
  Settings settings;
  settings.aggregation_pack = true;
  Table table(AggregateFunction::Quantize);
  table.add("", quantized({{63, 1}, {64, 1}}));

  EXPECT_EQ(table.print(settings),
            "\n  min .---. max  | count\n"
            "    0 :xx : 2    | 2\n");
}

TEST(AggregationText, AggpackShowsAllOfALinearRange) {
  Settings settings;
  settings.aggregation_pack = true;
  Table table(AggregateFunction::Lquantize, {{ValueKind::Integer, true, 4}},
              dif::LinearParameters{0, 3, 1}.pack());
  table.add(raw(7), {0, 0, 0, 1, 0});

  EXPECT_EQ(table.print(settings),
            "\n      key     min .-----. max      | count\n"
            "        7     < 0 :   X : >= 3     | 1\n");
}

TEST(AggregationText, KeysOfHistogramsHaveWidthsByTheirTypes) {
  Settings settings;
  settings.aggregation_pack = true;
  Table table(AggregateFunction::Quantize, {kString,
                                            {ValueKind::Integer, true, 1},
                                            {ValueKind::Integer, true, 2},
                                            {ValueKind::Integer, true, 8}});
  table.add(
      std::string("ls\0", 3) + raw<std::int8_t>(1) + raw<std::int16_t>(2) + raw<std::int64_t>(3),
      quantized({{64, 1}}));

  EXPECT_EQ(table.print(settings), "\n" + std::string(41, ' ') + "key  min .---. max  | count\n" +
                                       std::string(15, ' ') + "ls   1     2" +
                                       std::string(16, ' ') + "3    0 : X : 2    | 1\n");
}

TEST(AggregationText, NothingIsPrintedForNothing) {
  EXPECT_EQ(Table(AggregateFunction::Quantize).print(), "");
}

}  // namespace
}  // namespace ringside::cli
