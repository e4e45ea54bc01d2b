// In this file, top to bottom: evaluating, types by their text, reading expressions.
#include "providers/stable/place_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "vmm/base/check.h"
#include "vmm/base/numbers.h"

namespace ringside::providers {
namespace {

constexpr std::size_t kMostValue = sizeof(std::uint64_t);

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

// Evaluating

Result<std::uint64_t, Fault> PlaceValue::step(std::uint64_t base, const Step& step,
                                              const GuestReader& memory) {
  const auto at = GuestVirt(base).checked_add(step.offset);
  if (!at) return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, base});
  std::array<std::byte, kMostValue> bytes{};
  TRY(memory.read(*at, std::span(bytes).first(step.size)));
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return low_bits(value >> step.shift, step.bits, step.is_signed);
}

Result<std::uint64_t, Fault> PlaceValue::term(const Term& term, const ArgumentMoment& at,
                                              const guest_linux::Kernel& kernel) {
  std::uint64_t value = term.number;
  if (!term.base.empty()) value = TRY(term.base.front().value(at, kernel));
  if (term.root == Root::Source) value = TRY(term.source.value(at));
  if (term.root == Root::Current) {
    value = TRY(kernel.current_task(at.kernel, at.percpu_base)).raw();
  }
  for (const Step& member : term.steps) value = TRY(step(value, member, at.kernel));
  return value;
}

Result<std::uint64_t, Fault> PlaceValue::value(const ArgumentMoment& at,
                                               const guest_linux::Kernel& kernel) const {
  std::uint64_t sum = 0;
  for (const Term& part : terms_) {
    const std::uint64_t value = TRY(term(part, at, kernel));
    switch (part.join) {
      case Join::Add: sum += value; break;
      case Join::Subtract: sum -= value; break;
      case Join::And: sum &= value; break;
    }
  }
  return low_bits(sum, bits_, is_signed_);
}

bool PlaceCondition::holds(const Comparison& comparison, const ArgumentMoment& at,
                           const guest_linux::Kernel& kernel) const {
  const auto left = comparison.left.value(at, kernel);
  const auto right = comparison.right.value(at, kernel);
  if (!left || !right) return false;
  const auto a = static_cast<std::int64_t>(*left), b = static_cast<std::int64_t>(*right);
  switch (comparison.relation) {
    case Relation::Equal: return a == b;
    case Relation::Unequal: return a != b;
    case Relation::Less: return a < b;
    case Relation::Greater: return a > b;
  }
  __builtin_unreachable();
}

bool PlaceCondition::holds(const ArgumentMoment& at, const guest_linux::Kernel& kernel) const {
  return std::ranges::all_of(groups_, [&](const std::vector<Comparison>& group) {
    return std::ranges::any_of(
        group, [&](const Comparison& comparison) { return holds(comparison, at, kernel); });
  });
}

// Types by their text

std::optional<TypeId> find_written_type(const TypeGraph& types, std::string_view text) {
  if (text.ends_with(" *")) {
    text.remove_suffix(2);
    const auto target = find_written_type(types, text);
    if (!target) return std::nullopt;
    const Type& wanted = types[*target];
    const auto leads_there = [&](TypeId id) {
      if (types[id].kind != TypeKind::Pointer) return false;
      const Type& found = types[types[id].target];  // as it stands: no const
      return found.kind == wanted.kind && found.name == wanted.name;
    };
    for (TypeId id{1}; id < types.next_id(); ++id.value) {
      if (leads_there(id)) return id;
    }
    return std::nullopt;
  }
  constexpr std::string_view kStruct = "struct ";
  if (!text.starts_with(kStruct)) return types.find(text);
  return types.find(TypeKind::Struct, text.substr(kStruct.size()));
}

// Reading expressions

Result<PlaceCompiler::Native> PlaceCompiler::define(std::string_view name, std::string_view type,
                                                    std::string_view text) {
  const auto found = find_written_type(types_, type);
  const Type* const plain = found ? &types_[types_.resolve(*found)] : nullptr;
  if (plain == nullptr || plain->size == 0 || plain->size > kMostValue) {
    return fail(ErrorCode::Unsupported, fmt::format("this kernel has no type {}", type));
  }
  Native native{TRY(value(text)), *found};
  native.value.bits_ = static_cast<unsigned>(plain->size * 8);
  native.value.is_signed_ = plain->is_signed;
  named_.insert_or_assign(std::string(name), native);
  return native;
}

/// Fills where a term begins; the type, where it has one.
Result<std::optional<TypeId>> PlaceCompiler::root(std::string_view name,
                                                  PlaceValue::Term& term) const {
  if (const auto number = parse_number<std::uint64_t>(name)) {
    term.number = *number;
    return std::optional<TypeId>();
  }
  if (name.starts_with('&')) {
    const auto* symbol = kernel_.symbols().find(name.substr(1), "vmlinux");
    if (symbol == nullptr) {
      return fail(ErrorCode::Unsupported, fmt::format("this kernel has no {}", name.substr(1)));
    }
    term.number = symbol->address.raw();
    return std::optional<TypeId>();
  }
  if (name == "current") {
    term.root = PlaceValue::Root::Current;
    return find_written_type(types_, "struct task_struct *");
  }
  if (const auto known = named_.find(name); known != named_.end()) {
    term.base = {known->second.value};
    return std::optional(known->second.type);
  }
  if (name.front() >= 'A' && name.front() <= 'Z') {
    const auto constant = types_.find_enumerator(name);
    if (!constant) {
      return fail(ErrorCode::Unsupported, fmt::format("this kernel has no constant {}", name));
    }
    term.number = static_cast<std::uint64_t>(constant->second);
    return std::optional<TypeId>();
  }
  term.root = PlaceValue::Root::Source;
  if (name == "result" && end_ == End::Return) {
    term.source = kFunctionReturnArguments.arguments[1];
    return std::optional<TypeId>();
  }
  if (name == "elapsed") {
    term.source = ArgumentSource::filter_value(kElapsed);
    return std::optional<TypeId>();
  }
  if (name.starts_with("start")) {
    term.source =
        ArgumentSource::filter_value(kFirstStart + static_cast<std::uint32_t>(name.back() - '0'));
    return std::optional<TypeId>();
  }
  const auto parameter =
      name.starts_with("arg") ? parse_number<std::uint64_t>(name.substr(3)) : std::nullopt;
  CHECK(parameter && *parameter < dif::kMaxProbeArguments && end_ != End::Return);
  term.source = end_ == End::TrapFilter
                    ? ArgumentSource::filter_value(static_cast<std::uint32_t>(*parameter))
                    : kFunctionEntryArguments.arguments[*parameter];
  return std::optional<TypeId>();
}

/// Members, each after "->" or ".", from a value of type `type` on.
Result<void> PlaceCompiler::members(std::string_view text, TypeId type,
                                    PlaceValue::Term& term) const {
  while (!text.empty()) {
    const bool follows = text.starts_with("->");
    text.remove_prefix(follows ? 2 : 1);
    const std::string_view name = text.substr(0, text.find_first_of("-."));
    text.remove_prefix(name.size());
    std::uint64_t before = 0;  // bits from what the pointer leads to
    if (follows) {
      const TypeId pointer = types_.resolve(type);
      CHECK(types_[pointer].kind == TypeKind::Pointer);
      type = types_[pointer].target;
    } else {  // the structure that the last step has come to lies inside of another
      CHECK(!term.steps.empty());
      before = term.steps.back().offset * 8;
      term.steps.pop_back();
    }
    const auto member = types_.find_member(type, name);
    if (!member) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("{} of this kernel has no member {}", types_.to_string(type), name));
    }
    const std::uint64_t bit = before + member->bit_offset;
    const std::uint64_t size = std::min<std::uint64_t>(types_.size_of(member->type), kMostValue);
    PlaceValue::Step step;
    step.offset = bit / 8;
    step.shift = static_cast<std::uint8_t>(bit % 8);
    step.size = static_cast<std::uint8_t>(size);
    step.bits = static_cast<std::uint8_t>(member->bit_width != 0 ? member->bit_width : size * 8);
    step.is_signed = types_[types_.resolve(member->type)].is_signed;
    if (step.bits == 0 || step.shift + step.bits > size * 8) {
      return fail(ErrorCode::Unsupported, fmt::format("{} of this kernel has a member {} of no "
                                                      "size that can be read",
                                                      types_.to_string(type), name));
    }
    term.steps.push_back(step);
    type = member->type;
  }
  return {};
}

Result<PlaceValue::Term> PlaceCompiler::term(std::string_view text) {
  const std::string_view name = text.substr(0, std::min(text.find("->"), text.find('.')));
  PlaceValue::Term made;
  const std::optional<TypeId> type = TRY(root(name, made));
  if (name.size() == text.size()) return made;
  if (!type) return fail(ErrorCode::Unsupported, "the types of this kernel are not known");
  TRY(members(text.substr(name.size()), *type, made));
  return made;
}

Result<PlaceValue> PlaceCompiler::value(std::string_view text) {
  PlaceValue made;
  auto join = PlaceValue::Join::Add;
  text = trimmed(text);
  if (text.starts_with('-')) {
    join = PlaceValue::Join::Subtract;
    text.remove_prefix(1);
  }
  while (true) {
    const std::size_t end = text.find_first_of(' ');  // terms have no blanks, operators have them
    PlaceValue::Term next = TRY(term(text.substr(0, end)));
    next.join = join;
    made.terms_.push_back(std::move(next));
    if (end == text.npos) return made;
    text = trimmed(text.substr(end));
    CHECK(text.size() > 2);
    join = text[0] == '+'   ? PlaceValue::Join::Add
           : text[0] == '-' ? PlaceValue::Join::Subtract
                            : PlaceValue::Join::And;
    text = trimmed(text.substr(1));
  }
}

Result<PlaceCondition::Comparison> PlaceCompiler::comparison(std::string_view text) {
  using Relation = PlaceCondition::Relation;
  constexpr std::pair<std::string_view, Relation> kRelations[] = {{" == ", Relation::Equal},
                                                                  {" != ", Relation::Unequal},
                                                                  {" < ", Relation::Less},
                                                                  {" > ", Relation::Greater}};
  const auto* relation = std::ranges::find_if(
      kRelations, [&](const auto& row) { return text.find(row.first) != text.npos; });
  CHECK(relation != std::end(kRelations));
  const std::size_t at = text.find(relation->first);
  PlaceCondition::Comparison made;
  made.left = TRY(value(text.substr(0, at)));
  made.right = TRY(value(text.substr(at + relation->first.size())));
  made.relation = relation->second;
  return made;
}

Result<PlaceCondition> PlaceCompiler::condition(std::string_view text) {
  /// The part before the separator; `text` goes on after it.
  const auto take = [](std::string_view& text, std::string_view separator) {
    const std::size_t end = text.find(separator);
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + separator.size());
    return one;
  };
  PlaceCondition made;
  while (!text.empty()) {
    std::string_view group = take(text, " && ");
    if (group.starts_with('(')) group = group.substr(1, group.size() - 2);
    auto& comparisons = made.groups_.emplace_back();
    while (!group.empty()) comparisons.push_back(TRY(comparison(take(group, " || "))));
  }
  return made;
}

}  // namespace ringside::providers
