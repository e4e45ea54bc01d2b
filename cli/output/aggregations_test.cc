#include "cli/output/aggregations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cli/output/fake_program_for_tests.h"
#include "dif/program/aggregate_function.h"

namespace ringside::cli {
namespace {

using dif::AggregateEntry;
using dif::AggregateFunction;
using dif::ValueKind;
using dif::ValueType;

using testing_support::kInt, testing_support::kString;

dif::Aggregation define(AggregateFunction function, std::vector<ValueType> keys = {kString}) {
  dif::Aggregation aggregation;
  aggregation.function = function;
  aggregation.keys = std::move(keys);
  return aggregation;
}

std::vector<std::byte> key(std::string_view text) {
  std::vector<std::byte> bytes(text.size() + 1);
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

AggregateEntry entry_of(std::string_view text, std::vector<std::int64_t> words,
                        std::uint32_t aggregation = 0) {
  AggregateEntry result;
  result.aggregation = aggregation;
  result.key = key(text);
  result.words = std::move(words);
  return result;
}

std::string show(const std::vector<Aggregations::Row>& rows) {
  std::string text;
  for (const Aggregations::Row& row : rows) {
    text += row.keys.empty() ? "-" : std::string(text_value(row.keys[0].bytes));
    for (const AggregateValue& value : row.values)
      text += " " + std::to_string(scalar_value(value));
    text += "; ";
  }
  return text;
}

constexpr std::uint32_t kFirst[] = {0};
constexpr std::uint32_t kBoth[] = {0, 1};

TEST(Aggregations, AddChangesOfOneKey) {
  const std::vector definitions{define(AggregateFunction::Count)};
  Aggregations aggregations(definitions);

  aggregations.merge(std::vector{entry_of("a", {2}), entry_of("b", {1})});
  aggregations.merge(std::vector{entry_of("a", {5})});

  EXPECT_EQ(show(aggregations.rows(kFirst, {})), "b 1; a 7; ");
}

TEST(Aggregations, MinAndMaxKeepTheExtreme) {
  const std::vector definitions{define(AggregateFunction::Min), define(AggregateFunction::Max)};
  Aggregations aggregations(definitions);

  aggregations.merge(std::vector{entry_of("a", {-3}, 0), entry_of("a", {-3}, 1)});
  aggregations.merge(std::vector{entry_of("a", {4}, 0), entry_of("a", {4}, 1)});

  EXPECT_EQ(show(aggregations.rows(kBoth, {})), "a -3 4; ");
}

TEST(Aggregations, AverageAndDeviationDivideAtTheEnd) {
  const std::vector definitions{define(AggregateFunction::Avg), define(AggregateFunction::Stddev)};
  Aggregations aggregations(definitions);

  aggregations.merge(std::vector{entry_of("a", {1, 2}, 0), entry_of("a", {1, 2, 4, 0}, 1)});
  aggregations.merge(std::vector{entry_of("a", {1, 8}, 0), entry_of("a", {1, 8, 64, 0}, 1)});

  EXPECT_EQ(show(aggregations.rows(kBoth, {})), "a 5 3; ");
}

TEST(Aggregations, DeviationCarriesIntoTheHighWord) {
  const std::vector definitions{define(AggregateFunction::Stddev)};
  Aggregations aggregations(definitions);
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;  // (2^31)^2, four times: 2^64

  for (int i = 0; i < 4; ++i) {
    const std::int64_t value = i % 2 == 0 ? std::int64_t{1} << 31 : -(std::int64_t{1} << 31);
    aggregations.merge(std::vector{entry_of("a", {1, value, kHalf, 0})});
  }

  EXPECT_EQ(show(aggregations.rows(kFirst, {})), "a 2147483648; ");
}

TEST(Aggregations, TiesAreSortedByKey) {
  const std::vector definitions{define(AggregateFunction::Count)};
  Aggregations aggregations(definitions);

  aggregations.merge(std::vector{entry_of("c", {1}), entry_of("a", {1}), entry_of("b", {0})});

  EXPECT_EQ(show(aggregations.rows(kFirst, {})), "b 0; a 1; c 1; ");
}

TEST(Aggregations, ObeyTheSortOptions) {
  const std::vector definitions{define(AggregateFunction::Count), define(AggregateFunction::Sum)};
  Aggregations aggregations(definitions);
  aggregations.merge(std::vector{entry_of("a", {1}, 0), entry_of("b", {2}, 0),
                                 entry_of("a", {9}, 1), entry_of("b", {3}, 1)});
  Settings reversed, by_key_reversed, second;
  reversed.sort_reversed = true;
  by_key_reversed.sort_by_key = by_key_reversed.sort_reversed = true;
  second.sort_position = 1;

  EXPECT_EQ(show(aggregations.rows(kBoth, {})), "a 1 9; b 2 3; ");
  EXPECT_EQ(show(aggregations.rows(kBoth, reversed)), "b 2 3; a 1 9; ");
  EXPECT_EQ(show(aggregations.rows(kBoth, by_key_reversed)), "b 2 3; a 1 9; ");
  EXPECT_EQ(show(aggregations.rows(kBoth, second)), "b 2 3; a 1 9; ");
}

TEST(Aggregations, JoinFillsWhatIsMissingWithNothing) {
  const std::vector definitions{define(AggregateFunction::Count), define(AggregateFunction::Avg)};
  Aggregations aggregations(definitions);

  aggregations.merge(std::vector{entry_of("a", {1}, 0), entry_of("b", {2, 6}, 1)});

  EXPECT_EQ(show(aggregations.rows(kBoth, {})), "b 0 3; a 1 0; ");
}

TEST(Aggregations, ClearKeepsKeysAndForgetsValues) {
  const std::vector definitions{define(AggregateFunction::Min)};
  Aggregations aggregations(definitions);
  aggregations.merge(std::vector{entry_of("a", {3}), entry_of("b", {4})});

  aggregations.clear(0);
  aggregations.merge(std::vector{entry_of("a", {7})});

  EXPECT_EQ(show(aggregations.rows(kFirst, {})), "b 0; a 7; ");
}

TEST(Aggregations, TruncKeepsTheLargestOrTheSmallest) {
  const std::vector definitions{define(AggregateFunction::Count)};
  const std::vector changes{entry_of("a", {1}), entry_of("b", {2}), entry_of("c", {3})};
  Aggregations top(definitions), bottom(definitions), all(definitions);
  for (Aggregations* each : {&top, &bottom, &all}) each->merge(changes);

  top.trunc(0, 2);
  bottom.trunc(0, -1);
  all.trunc(0, std::nullopt);

  EXPECT_EQ(show(top.rows(kFirst, {})), "b 2; c 3; ");
  EXPECT_EQ(show(bottom.rows(kFirst, {})), "a 1; ");
  EXPECT_EQ(show(all.rows(kFirst, {})), "");
}

TEST(Aggregations, NormalizeDividesWhatIsShown) {
  const std::vector definitions{define(AggregateFunction::Sum)};
  Aggregations aggregations(definitions);
  aggregations.merge(std::vector{entry_of("a", {100})});

  aggregations.normalize(0, 7);
  EXPECT_EQ(show(aggregations.rows(kFirst, {})), "a 14; ");

  aggregations.normalize(0, 1);
  EXPECT_EQ(show(aggregations.rows(kFirst, {})), "a 100; ");
}

TEST(Aggregations, NormalizationLeavesLaterKeysAlone) {
  const std::vector definitions{define(AggregateFunction::Sum)};
  Aggregations aggregations(definitions);
  aggregations.merge(std::vector{entry_of("a", {100})});

  aggregations.normalize(0, 10);
  aggregations.merge(std::vector{entry_of("b", {50}), entry_of("a", {-200})});

  EXPECT_EQ(show(aggregations.rows(kFirst, {})), "a -10; b 50; ");
}

TEST(Aggregations, DeviationWorksInWholeNumbers) {
  const std::vector definitions{define(AggregateFunction::Stddev)};
  Aggregations aggregations(definitions);

  aggregations.merge(std::vector{entry_of("a", {2, 3, 5, 0}), entry_of("b", {2, -3, 5, 0})});

  EXPECT_EQ(show(aggregations.rows(kFirst, {})), "a 1; b 1; ") << "5 / 2 - (3 / 2) ** 2";
}

TEST(Aggregations, KeysAreSplitByTheirTypes) {
  const dif::Aggregation definition =
      define(AggregateFunction::Count, {kInt, kString, {ValueKind::Integer, false, 8}});
  std::vector<std::byte> bytes(4 + 3 + 8);
  const std::int32_t number = -9;
  const std::uint64_t wide = 77;
  std::memcpy(bytes.data(), &number, 4);
  std::memcpy(bytes.data() + 4, "ab", 3);
  std::memcpy(bytes.data() + 7, &wide, 8);

  const std::vector<Value> values = key_values(definition, bytes);

  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(signed_value(values[0].bytes), -9);
  EXPECT_EQ(text_value(values[1].bytes), "ab");
  EXPECT_EQ(unsigned_value(values[2].bytes), 77u);
  EXPECT_EQ(key_values(definition, Bytes(bytes).first(9)).size(), 2u) << "a short key";
}

TEST(Aggregations, AStackOfTheKernelIsOneAmongStacksOfUsers) {
  const dif::Aggregation definition =
      define(AggregateFunction::Count, {{ValueKind::UserStack, false, 24}, kInt});
  const auto stack_of = [&](std::uint64_t first) {
    std::vector<std::byte> bytes(24 + 4);
    std::memcpy(bytes.data(), &first, 8);
    bytes[8] = std::byte{0x10};
    const std::vector<Value> values = key_values(definition, bytes);
    EXPECT_EQ(values.size(), 2u);
    EXPECT_EQ(word_at(values[0].bytes, values[0].type.kind == ValueKind::UserStack ? 1 : 0), 0x10u);
    return values[0].type;
  };
  EXPECT_EQ(stack_of(1234), (ValueType{ValueKind::UserStack, false, 24}));
  EXPECT_EQ(stack_of(dif::kKernelFrames), (ValueType{ValueKind::KernelStack, false, 16}));
}

/// Functions of 0x100 bytes and modules of 0x1000, named by where they begin.
struct RoundNames : CodeNames {
  std::string describe(GuestVirt address) const override {
    const std::uint64_t at = address.raw();
    if (at < 0x1000) return fmt::format("0x{:x}", at);
    return fmt::format("m{:x}`f{:x}+0x{:x}", at / 0x1000, at / 0x100, at % 0x100);
  }
  std::string describe_user(std::uint64_t, GuestVirt address) const override {
    return describe(address);
  }
};

AggregateEntry code_entry(std::vector<std::uint64_t> words, std::int64_t count) {
  AggregateEntry result;
  result.key.resize(words.size() * 8);
  std::memcpy(result.key.data(), words.data(), result.key.size());
  result.words = {count};
  return result;
}

/// "ADDRESS COUNT; " of each row.
std::string show_code(const std::vector<Aggregations::Row>& rows) {
  std::string text;
  for (const Aggregations::Row& row : rows) {
    text += fmt::format("{:x} {}; ", code_address(row.keys[0]).address.raw(),
                        scalar_value(row.values[0]));
  }
  return text;
}

TEST(Aggregations, AddressesOfOneFunctionAreOneKey) {
  const std::vector definitions{
      define(AggregateFunction::Count, {{ValueKind::KernelSymbol, false, 8}})};
  const RoundNames names;
  Aggregations aggregations(definitions, &names);

  aggregations.merge(std::vector{code_entry({0x1210}, 1), code_entry({0x1234}, 2),
                                 code_entry({0x1300}, 4), code_entry({0x10}, 9),
                                 code_entry({0x20}, 8)});
  aggregations.merge(std::vector{code_entry({0x1210}, 2)});

  EXPECT_EQ(show_code(aggregations.rows(kFirst, {})), "1300 4; 1200 5; 20 8; 10 9; ")
      << "addresses without a name stay apart";
}

TEST(Aggregations, AddressesOfOneModuleAreOneKey) {
  const std::vector definitions{
      define(AggregateFunction::Count, {{ValueKind::KernelModule, false, 8}})};
  const RoundNames names;
  Aggregations aggregations(definitions, &names);

  aggregations.merge(
      std::vector{code_entry({0x1210}, 1), code_entry({0x1f34}, 2), code_entry({0x2300}, 4)});

  EXPECT_EQ(show_code(aggregations.rows(kFirst, {})), "1210 3; 2300 4; ");
}

TEST(Aggregations, OneNameInTwoProcessesIsTwoKeys) {
  const std::vector definitions{
      define(AggregateFunction::Count, {{ValueKind::UserSymbol, false, 16}})};
  const RoundNames names;
  Aggregations aggregations(definitions, &names);

  aggregations.merge(std::vector{code_entry({7, 0x1210}, 1), code_entry({7, 0x1220}, 1),
                                 code_entry({8, 0x1210}, 1)});

  EXPECT_EQ(show_code(aggregations.rows(kFirst, {})), "1200 1; 1200 2; ");
}

TEST(Aggregations, WithoutNamesEachAddressIsAKey) {
  const std::vector definitions{
      define(AggregateFunction::Count, {{ValueKind::KernelSymbol, false, 8}})};
  Aggregations aggregations(definitions);

  aggregations.merge(std::vector{code_entry({0x1210}, 1), code_entry({0x1234}, 2)});

  EXPECT_EQ(show_code(aggregations.rows(kFirst, {})), "1210 1; 1234 2; ");
}

}  // namespace
}  // namespace ringside::cli
