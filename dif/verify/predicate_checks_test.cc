#include "dif/verify/predicate_checks.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

namespace ringside::dif {
namespace {

using Relation = RecordCheck::Relation;
using Source = RecordValue::Source;
using Mark = PredicateWay::Mark;

constexpr RecordValue kArg1{Source::Argument, 1};
constexpr RecordValue kName{Source::Name};
constexpr std::array kBranches = {Opcode::Be,  Opcode::Bne, Opcode::Bl,  Opcode::Ble,
                                  Opcode::Bg,  Opcode::Bge, Opcode::Blu, Opcode::Bleu,
                                  Opcode::Bgu, Opcode::Bgeu};
constexpr std::uint64_t kNumbers[] = {
    0, 1, 5, UINT64_MAX, UINT64_MAX - 1, 1ULL << 63, (1ULL << 63) - 1, (1ULL << 63) + 1};

bool is_taken(Opcode branch, std::uint64_t left, std::uint64_t right) {
  return takes_branch(branch, compare(left, right));
}
RecordCheck check_of(std::uint16_t argument) {
  return {{Source::Argument, argument}, Relation::Equal, false, 7};
}
std::uint64_t word_of(const std::string& text) {
  std::uint64_t word = 0;
  std::memcpy(&word, text.data(), text.size());
  return word;
}

bool holds(const RecordCheck& check, std::uint64_t value) {
  const auto a = static_cast<std::int64_t>(value), b = static_cast<std::int64_t>(check.with);
  value &= check.value.mask;
  switch (check.relation) {
    case Relation::Equal: return (value == check.with) != check.is_negated;
    case Relation::Less: return (a < b) != check.is_negated;
    case Relation::LessUnsigned: return (value < check.with) != check.is_negated;
  }
  return false;
}

TEST(PredicateChecks, HoldExactlyWhereTheBranchGoesThatWay) {
  for (const Opcode branch : kBranches) {
    for (const std::uint64_t value : kNumbers) {
      for (const std::uint64_t with : kNumbers) {
        const bool goes = is_taken(branch, value, with);
        for (const bool taken : {true, false}) {
          for (const RecordCheck& check : checks_after(branch, taken, kArg1, with)) {
            EXPECT_EQ(check.value, kArg1);
            EXPECT_EQ(holds(check, value), goes == taken) << value << ' ' << with;
          }
          for (const RecordCheck& check : checks_after(branch, taken, with, kArg1)) {
            EXPECT_EQ(holds(check, value), is_taken(branch, with, value) == taken)
                << value << ' ' << with;
          }
        }
      }
    }
  }
}

TEST(PredicateChecks, OnlyTheLargestNumbersCannotBeCompared) {
  for (const Opcode branch : kBranches) {
    for (const std::uint64_t with : {std::uint64_t{5}, UINT64_MAX, std::uint64_t{1} << 63}) {
      const bool is_largest =
          with == UINT64_MAX && (branch == Opcode::Bgu || branch == Opcode::Bleu);
      EXPECT_EQ(checks_after(branch, true, kArg1, with).size(), is_largest ? 0u : 1u);
    }
  }
  EXPECT_TRUE(checks_after(Opcode::Bg, true, kArg1, UINT64_MAX >> 1).empty());
}

TEST(PredicateChecks, WhatIsNotKnownTellsNothing) {
  EXPECT_TRUE(checks_after(Opcode::Be, true, kArg1, {}).empty());
  EXPECT_TRUE(checks_after(Opcode::Be, true, {}, std::uint64_t{1}).empty());
  EXPECT_TRUE(checks_after(Opcode::Be, true, kArg1, kArg1).empty());
  EXPECT_TRUE(checks_after(Opcode::Be, true, std::uint64_t{1}, std::uint64_t{1}).empty());
  EXPECT_TRUE(checks_after(Opcode::Be, true, kArg1, std::string_view("a")).empty());
  EXPECT_TRUE(checks_after(Opcode::Be, true, kName, std::uint64_t{1}).empty());
  EXPECT_TRUE(checks_after(Opcode::Be, true, std::string_view("a"), {}).empty());
  EXPECT_TRUE(checks_after(Opcode::Bl, true, kName, std::string_view("a")).empty());
}

TEST(PredicateChecks, ANameIsComparedWithItsEnd) {
  const auto checks = checks_after(Opcode::Be, true, kName, std::string_view("cat"));
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].value.source, Source::Name);
  EXPECT_EQ(checks[0].value.mask, 0xffffffffu);
  EXPECT_EQ(checks[0].with, word_of("cat"));
  EXPECT_FALSE(checks[0].is_negated);
  EXPECT_EQ(checks_after(Opcode::Bne, false, std::string_view("cat"), kName), checks);
  EXPECT_TRUE(checks_after(Opcode::Bne, true, kName, std::string_view("cat"))[0].is_negated);
}

TEST(PredicateChecks, ALongNameIsTwoWords) {
  const auto seven = checks_after(Opcode::Be, true, kName, std::string_view("1234567"));
  ASSERT_EQ(seven.size(), 1u);
  EXPECT_EQ(seven[0].value.mask, UINT64_MAX);
  const auto eight = checks_after(Opcode::Be, true, kName, std::string_view("12345678"));
  ASSERT_EQ(eight.size(), 2u);
  EXPECT_EQ(eight[0].with, word_of("12345678"));
  EXPECT_EQ(eight[1].value.number, 1u);
  EXPECT_EQ(eight[1].value.mask, 0xffu);
  EXPECT_EQ(eight[1].with, 0u);
  const auto most = checks_after(Opcode::Be, true, kName, std::string_view("123456789abcdef"));
  ASSERT_EQ(most.size(), 2u);
  EXPECT_EQ(most[1].value.mask, UINT64_MAX);
  EXPECT_EQ(most[1].with, word_of("9abcdef"));
  EXPECT_TRUE(checks_after(Opcode::Be, true, kName, std::string_view("0123456789abcdef")).empty());
  EXPECT_TRUE(checks_after(Opcode::Bne, true, kName, std::string_view("12345678")).empty())
      << "either word may differ";
}

TEST(PredicateChecks, AreThoseOfAllWaysToTrue) {
  const PredicateWay both{{check_of(1), check_of(2)}, true}, one{{check_of(2), check_of(3)}, true};
  const PredicateWay no{{check_of(4)}, false};
  EXPECT_EQ(common_checks(std::array{both, no}, true), (std::vector{check_of(1), check_of(2)}));
  EXPECT_EQ(common_checks(std::array{both, no, one}, true), std::vector{check_of(2)});
  EXPECT_TRUE(common_checks(std::array{no}, true).empty());
  EXPECT_TRUE(common_checks({}, true).empty());
}

TEST(PredicateChecks, AWayThatMayFailCountsUpToThere) {
  const PredicateWay yes{{check_of(1), check_of(2)}, true};
  const PredicateWay fails{{check_of(2), Mark::Other, check_of(1)}, false};
  EXPECT_EQ(common_checks(std::array{yes, fails}, false), std::vector{check_of(2)});
}

TEST(PredicateChecks, ALookMayFailOrNot) {
  const PredicateWay yes{{check_of(1), Mark::Look, check_of(2)}, true};
  EXPECT_EQ(common_checks(std::array{yes}, true), std::vector{check_of(1)});
  EXPECT_EQ(common_checks(std::array{yes}, false), (std::vector{check_of(1), check_of(2)}));
  const PredicateWay no{{check_of(3), Mark::Look}, false};
  EXPECT_TRUE(common_checks(std::array{yes, no}, true).empty());
  EXPECT_EQ(common_checks(std::array{yes, no}, false), (std::vector{check_of(1), check_of(2)}));
}

}  // namespace
}  // namespace ringside::dif
