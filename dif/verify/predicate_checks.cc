#include "dif/verify/predicate_checks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

namespace ringside::dif {
namespace {

using Relation = RecordCheck::Relation;

/// The branch that means the same when both sides change places.
Opcode mirrored(Opcode branch) {
  constexpr std::array<std::pair<Opcode, Opcode>, 4> kPairs{{{Opcode::Bg, Opcode::Bl},
                                                             {Opcode::Bge, Opcode::Ble},
                                                             {Opcode::Bgu, Opcode::Blu},
                                                             {Opcode::Bgeu, Opcode::Bleu}}};
  for (const auto& [one, other] : kPairs) {
    if (branch == one) return other;
    if (branch == other) return one;
  }
  return branch;
}

/// The value compares so with the constant if the branch is taken. "At most n" is "less than n +
/// 1"; the largest number has none.
std::vector<RecordCheck> checks_of_number(Opcode branch, const RecordValue& value,
                                          std::uint64_t with) {
  const bool is_largest = with == std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  const bool is_largest_unsigned = with == UINT64_MAX;
  switch (branch) {
    case Opcode::Be: return {{value, Relation::Equal, false, with}};
    case Opcode::Bne: return {{value, Relation::Equal, true, with}};
    case Opcode::Bl: return {{value, Relation::Less, false, with}};
    case Opcode::Bge: return {{value, Relation::Less, true, with}};
    case Opcode::Blu: return {{value, Relation::LessUnsigned, false, with}};
    case Opcode::Bgeu: return {{value, Relation::LessUnsigned, true, with}};
    case Opcode::Ble:
    case Opcode::Bg:
      if (is_largest) return {};
      return {{value, Relation::Less, branch == Opcode::Bg, with + 1}};
    case Opcode::Bleu:
    case Opcode::Bgu:
      if (is_largest_unsigned) return {};
      return {{value, Relation::LessUnsigned, branch == Opcode::Bgu, with + 1}};
    default: return {};
  }
}

/// The name and its NUL are compared, in words. That they differ is one check only if they differ
/// in one word.
std::vector<RecordCheck> checks_of_name(bool equal, std::string_view text) {
  const std::size_t bytes = text.size() + 1;
  if (bytes > kTaskNameBytes || (!equal && bytes > sizeof(std::uint64_t))) return {};
  std::vector<RecordCheck> checks;
  for (std::uint16_t word = 0; word * sizeof(std::uint64_t) < bytes; ++word) {
    const std::size_t first = word * sizeof(std::uint64_t);
    RecordCheck check{.value = {RecordValue::Source::Name, word}, .is_negated = !equal};
    const std::string_view part = text.substr(std::min(first, text.size()), sizeof check.with);
    std::memcpy(&check.with, part.data(), part.size());
    const std::size_t compared = std::min(bytes - first, sizeof(std::uint64_t));
    check.value.mask = UINT64_MAX >> (64 - 8 * compared);
    checks.push_back(check);
  }
  return checks;
}

std::vector<RecordCheck> checks_of_texts(Opcode branch, bool taken, const RecordValue& name,
                                         std::string_view text) {
  const bool tells = branch == Opcode::Be || branch == Opcode::Bne;
  if (!tells || name.source != RecordValue::Source::Name) return {};
  return checks_of_name((branch == Opcode::Be) == taken, text);
}

}  // namespace

std::vector<RecordCheck> checks_after(Opcode branch, bool taken, const Compared& left,
                                      const Compared& right) {
  if (!std::holds_alternative<RecordValue>(left)) {
    if (!std::holds_alternative<RecordValue>(right)) return {};
    return checks_after(mirrored(branch), taken, right, left);
  }
  const RecordValue& value = std::get<RecordValue>(left);
  if (const auto* text = std::get_if<std::string_view>(&right)) {
    return checks_of_texts(branch, taken, value, *text);
  }
  const auto* with = std::get_if<std::uint64_t>(&right);
  if (with == nullptr || value.source == RecordValue::Source::Name) return {};
  auto checks = checks_of_number(branch, value, *with);
  for (RecordCheck& check : checks) check.is_negated = check.is_negated == taken;
  return checks;
}

void keep_common(std::vector<RecordCheck>& checks, std::span<const RecordCheck> others) {
  std::erase_if(checks, [others](const RecordCheck& one) {
    return std::ranges::find(others, one) == others.end();
  });
}

std::vector<RecordCheck> common_checks(std::span<const PredicateWay> ways, bool looks_fail) {
  std::optional<std::vector<RecordCheck>> common;
  for (const PredicateWay& way : ways) {
    std::vector<RecordCheck> checks;
    bool may_fail = false;
    for (const auto& step : way.steps) {
      const auto* const mark = std::get_if<PredicateWay::Mark>(&step);
      may_fail = mark != nullptr && (looks_fail || *mark == PredicateWay::Mark::Other);
      if (may_fail) break;
      if (mark == nullptr) checks.push_back(std::get<RecordCheck>(step));
    }
    if (!way.is_true && !may_fail) continue;
    if (!common) {
      common = std::move(checks);
    } else {
      keep_common(*common, checks);
    }
  }
  return common.value_or(std::vector<RecordCheck>());
}

}  // namespace ringside::dif
