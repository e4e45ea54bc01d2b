// In this file, top to bottom: what a place passes, the text of arguments, making one,
// its values, arrivals at the end and at the beginning.
#include "providers/stable/stable_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace ringside::providers {
namespace {

using dif::DefinitionText;
using dif::ProbePlace;

// The arguments of a place

using PassedTypes = std::optional<std::vector<TypeId>>;

/// Whether `wanted` is a pointer to what `passed` points at, which may be anything.
bool may_be_passed(const TypeGraph& types, TypeId passed, TypeId wanted) {
  const Type &left = types[types.resolve(passed)], &right = types[types.resolve(wanted)];
  if (left.kind != TypeKind::Pointer || right.kind != TypeKind::Pointer) return false;
  const Type& target = types[types.resolve(left.target)];
  return target.kind == TypeKind::Void || target.name == types[types.resolve(right.target)].name;
}

PassedTypes types_of_function(const guest_linux::Kernel& kernel,
                              const guest_linux::Symbol* function, ProbePlace::Kind kind) {
  const TypeGraph& types = kernel.types();
  const auto prototype = function != nullptr ? kernel.prototype(*function) : std::nullopt;
  if (!prototype || types[*prototype].kind != TypeKind::Function) return std::nullopt;
  std::vector<TypeId> result;
  if (kind == ProbePlace::Kind::Entry) {
    for (const Parameter& parameter : types.parameters(*prototype))
      result.push_back(parameter.type);
    return result;
  }
  const auto offset = types.find("long");
  const Type& returned = types[types.resolve(types[*prototype].target)];
  if (!offset) return std::nullopt;
  if (returned.size == 0) return std::vector<TypeId>{*offset};
  return std::vector<TypeId>{*offset, types[*prototype].target};
}

PassedTypes passed_types(const guest_linux::Kernel& kernel, KernelPlaces& places,
                         const ProbePlace& place) {
  if (place.kind == ProbePlace::Kind::Counter || place.is_of_processes()) return std::nullopt;
  if (place.kind != ProbePlace::Kind::Tracepoint) {
    return types_of_function(kernel, places.function(place), place.kind);
  }
  std::vector<TypeId> result;
  for (const Parameter& parameter : places.parameters(place)) result.push_back(parameter.type);
  return result;
}

/// Where the place's arguments are, each as its type says, and the words that are remembered.
ArgumentPlan passed_plan(const TypeGraph& types, const ProbePlace& place,
                         const PassedTypes& passed) {
  ArgumentPlan plan;
  switch (place.kind) {
    case ProbePlace::Kind::Entry:
    case ProbePlace::Kind::UserEntry: plan = kFunctionEntryArguments; break;
    case ProbePlace::Kind::Return:
    case ProbePlace::Kind::UserReturn:
    case ProbePlace::Kind::OwnReturn: plan = kFunctionReturnArguments; break;
    default:
      for (unsigned n = 0; n < plan.arguments.size(); ++n) {
        plan.arguments[n] = ArgumentSource::filter_value(n);
      }
  }
  for (std::size_t n = 0; passed && n < std::min(passed->size(), plan.arguments.size()); ++n) {
    const Type& plain = types[types.resolve((*passed)[n])];
    const bool is_number = plain.kind == TypeKind::Integer || plain.kind == TypeKind::Enum;
    const bool is_part = plain.size == 1 || plain.size == 2 || plain.size == 4;
    if (!is_number || !is_part) continue;
    plan.arguments[n] =
        plan.arguments[n].narrowed(static_cast<std::uint8_t>(plain.size), plain.is_signed);
  }
  return plan;
}

// The text of arguments

/// Values that name others several times grow with each step, without this bound to any size.
constexpr std::size_t kLongestExpression = 64 << 10;

/// With values in the place of their markers.
Result<DefinitionText> filled_in(const DefinitionText& text,
                                 const std::vector<DefinitionText>& values) {
  DefinitionText result{{}, text.line};
  for (std::size_t at = 0; at < text.text.size(); ++at) {
    const bool is_marker =
        text.text[at] == dif::ProbeDefinition::kMarker && at + 1 < text.text.size();
    if (!is_marker) {
      result.text += text.text[at];
      continue;
    }
    const auto n = static_cast<std::size_t>(text.text[++at] - '0');
    if (n < values.size()) result.text += values[n].text;
    if (result.text.size() > kLongestExpression) {
      return fail(ErrorCode::Limit,
                  fmt::format("with the values that it names, the expression of line {} is longer "
                              "than {} characters",
                              text.line, kLongestExpression));
    }
  }
  return result;
}

/// The n of "args[n]", if the text is no more than that.
std::optional<std::size_t> argument_alone(std::string_view text) {
  const bool fits = text.size() == 7 && text.starts_with("args[") && text.ends_with(']');
  if (!fits || text[5] < '0' || text[5] > '9') return std::nullopt;
  return static_cast<std::size_t>(text[5] - '0');
}

/// A pointer that is an argument of the place as it stands has to be what this kernel passes there.
Result<void> check_passed(const TypeGraph& types, const ProbePlace& place, const std::string& where,
                          const dif::ProbeDefinition::Value& value, TypeId type,
                          const DefinitionText& text, const PassedTypes& passed) {
  const auto n = argument_alone(text.text);
  if (!n || !passed) return {};
  if (place.kind == ProbePlace::Kind::Tracepoint && *n >= passed->size()) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the static tracepoint {} of this kernel has {} arguments, and not {}",
                            where, passed->size(), value.name));
  }
  if (!value.type.ends_with(" *")) return {};
  if (*n < passed->size() && may_be_passed(types, (*passed)[*n], type)) return {};
  return fail(ErrorCode::Unsupported, fmt::format("{} of this kernel takes no {} as parameter {}",
                                                  where, value.type, *n + 1));
}

/// Compiles what it is asked for, unless there is nothing.
Result<std::optional<dif::VerifiedProgram>> compiled(const DefinedProbes& defined,
                                                     const guest_linux::Kernel& kernel,
                                                     const dif::DefinitionPart& part,
                                                     std::size_t library,
                                                     const PassedTypes& passed) {
  if (part.condition.text.empty() && part.values.empty()) return std::nullopt;
  auto program = TRY(defined.compile(kernel, part, library, passed));
  const dif::Clause& clause = program.program().clauses.front();
  if (clause.predicate) TRY(PlaceEvaluator::check(*clause.predicate));
  for (const dif::Action& action : clause.actions) {
    TRY(PlaceEvaluator::check(action.arguments.front()));
  }
  return std::optional(std::move(program));
}

/// The first of the choices that this kernel has; the error is the last one's.
Result<DefinitionText> choose(const dif::ProbeDefinition::Value& value,
                              const std::vector<DefinitionText>& before,
                              const std::function<Result<void>(const DefinitionText&)>& try_out) {
  Result<void> fine;
  DefinitionText chosen;
  for (const DefinitionText& choice : value.choices) {
    chosen = TRY(filled_in(choice, before));
    fine = try_out(chosen);
    if (fine) break;
  }
  TRY(std::move(fine));
  chosen.text = value.type.empty() ? fmt::format("({})", chosen.text)
                                   : fmt::format("(({})({}))", value.type, chosen.text);
  return chosen;
}

}  // namespace

// Making one

Result<std::unique_ptr<StablePlace>> StablePlace::make(const dif::ProbeDefinition& probe,
                                                       const DefinedProbes& defined,
                                                       const guest_linux::Kernel& kernel,
                                                       KernelPlaces& places,
                                                       const PlaceEvaluator& evaluator) {
  TRY(places.check(probe.place));
  if (probe.beginning) TRY(places.check(probe.beginning->place));
  auto place = std::make_unique<StablePlace>(probe, kernel, evaluator);
  TRY(place->compile_end(defined, places));
  if (probe.beginning) TRY(place->compile_beginning(defined, places));
  for (unsigned n = 0; n < place->types_.size(); ++n) {
    place->plan_.arguments[n] = ArgumentSource::computed(*place, n);
  }
  return place;
}

Result<void> StablePlace::compile_end(const DefinedProbes& defined, KernelPlaces& places) {
  const TypeGraph& types = kernel_.types();
  const PassedTypes passed = passed_types(kernel_, places, probe_.place);
  const std::string where = places.function_name(probe_.place);
  std::vector<DefinitionText> values;
  for (const auto& value : probe_.values) {
    const auto type =
        value.type.empty() ? std::nullopt : std::optional(TRY(places.written_type(value.type)));
    values.push_back(TRY(choose(value, values, [&](const DefinitionText& text) -> Result<void> {
      if (type) TRY(check_passed(types, probe_.place, where, value, *type, text, passed));
      if (value.choices.size() == 1) return {};
      TRY(compiled(defined, kernel_, {{}, {text}}, probe_.library, passed));
      return {};
    })));
  }
  dif::DefinitionPart part{TRY(filled_in(probe_.condition, values)), {}};
  for (const auto& argument : probe_.arguments) {
    part.values.push_back(values[argument.value]);
    types_.push_back(TRY(places.written_type(argument.type)));
    const Type& plain = types[types.resolve(types_.back())];
    widths_.push_back({static_cast<unsigned>(plain.size * 8), plain.is_signed});
  }
  if (probe_.beginning && probe_.beginning->key_at_end) {
    part.values.push_back(TRY(filled_in(*probe_.beginning->key_at_end, values)));
  }
  ArgumentPlan plan = passed_plan(types, probe_.place, passed);
  for (unsigned n = 0; probe_.beginning && n < probe_.beginning->remembered.size(); ++n) {
    const unsigned word = dif::first_remembered(probe_.place.kind) + n;
    plan.arguments[word] = ArgumentSource::filter_value(word);
  }
  auto program = TRY(compiled(defined, kernel_, part, probe_.library, passed));
  if (program) end_.emplace(std::move(*program), plan);
  return {};
}

Result<void> StablePlace::compile_beginning(const DefinedProbes& defined, KernelPlaces& places) {
  const auto& beginning = *probe_.beginning;
  const PassedTypes passed = passed_types(kernel_, places, beginning.place);
  dif::DefinitionPart part{beginning.condition, {}};
  for (std::size_t n = 0; n < beginning.remembered.size(); ++n) {
    part.values.push_back(beginning.remembered[n].value);
    if (beginning.remembered[n].adds) adding_ |= 1U << n;
  }
  if (beginning.key) part.values.push_back(*beginning.key);
  // A function without parameters has none to remember.
  if (part.values.empty()) part.values.push_back({"0", probe_.line});
  auto program = TRY(compiled(defined, kernel_, part, probe_.library, passed));
  beginning_.emplace(std::move(*program), passed_plan(kernel_.types(), beginning.place, passed));
  return {};
}

// Its values

Result<std::uint64_t, Fault> StablePlace::argument(unsigned n, const ArgumentMoment& at) const {
  const std::uint64_t value = TRY(evaluator_.evaluate(end_->value(n), end_->plan, at));
  return low_bits(value, widths_[n].bits, widths_[n].is_signed);
}

RecordedArgument StablePlace::recorded(unsigned n) const {
  auto number = dif::recorded_number(end_->value(n));
  const bool is_address = widths_[n].bits == 64;
  if (!is_address) number.address.reset();
  return {{end_->plan, std::move(number.needs)}, number.address};
}

// Arrivals

bool StablePlace::PlaceFilter::fires(const ArgumentMoment& at, FilterValues& out) const {
  if (site_ != nullptr && !site_->fires(at, out)) return false;
  ArgumentMoment then = at;
  then.filter_values = &out;
  return end_ == End::End ? place_.ends(then, out) : place_.begins(then);
}

RecordedFilter StablePlace::PlaceFilter::recorded() const {
  RecordedFilter all = site_ != nullptr ? site_->recorded() : RecordedFilter();
  if (end_ == End::Beginning) {
    all.codes.push_back(
        {place_.beginning_->plan, dif::record_needs(place_.beginning_->clause(), 0)});
  } else if (place_.end_) {
    all.codes.push_back({place_.end_->plan, place_.needs_at_end()});
  }
  return all;
}

/// To decide whether the probe fires; not for its arguments.
dif::RecordNeeds StablePlace::needs_at_end() const {
  dif::RecordNeeds needs;
  const auto& predicate = end_->clause().predicate;
  if (predicate) needs.add_looks(dif::recorded_number(*predicate).needs);
  const bool has_key = probe_.beginning && probe_.beginning->key;
  if (has_key) needs.add_looks(dif::recorded_number(end_->value(types_.size())).needs);
  return needs;
}

const TrapFilter* StablePlace::at_end(const TrapFilter* site) {
  const bool has_condition = end_ && end_->clause().predicate;
  if (site == nullptr && !has_condition && !beginning_) return nullptr;
  return &arrivals_.emplace_back(*this, site, PlaceFilter::End::End);
}

const TrapFilter* StablePlace::at_start(const TrapFilter* site,
                                        std::atomic<std::uint64_t>& displaced) {
  if (starts_ == nullptr) starts_ = std::make_shared<StartTable>(displaced);
  return &arrivals_.emplace_back(*this, site, PlaceFilter::End::Beginning);
}

/// A condition that cannot be computed does not hold.
bool StablePlace::holds(const Code& code, const ArgumentMoment& at) const {
  const auto& predicate = code.clause().predicate;
  if (!predicate) return true;
  const auto value = evaluator_.evaluate(*predicate, code.plan, at);
  return value && *value != 0;
}

/// The key of what begins or ends there: of a call its stack, else the object, which is value `n`
/// of the code. Stacks of processes may have the same addresses. Empty where it cannot be told.
std::optional<std::uint64_t> StablePlace::key(const std::optional<Code>& code, std::size_t n,
                                              const ArgumentMoment& at) const {
  const auto& beginning = *probe_.beginning;
  const std::uint64_t stack = at.registers.*arch::kStackPointer;
  if (!beginning.key && !beginning.place.is_of_processes()) return stack;
  Result<std::uint64_t, Fault> object = probe_.counts_last_beginning() ? 0 : stack;
  if (beginning.key) object = evaluator_.evaluate(code->value(n), code->plan, at);
  // Pairs that have one key by chance are as rare as those of 64 random bits.
  constexpr std::uint64_t kSpread = 0xff51'afd7'ed55'8ccd;
  const auto task = evaluator_.current_task(at);
  if (!task || !object) return std::nullopt;
  return *task ^ *object * kSpread;
}

bool StablePlace::ends(const ArgumentMoment& at, FilterValues& out) const {
  if (!end_ && !beginning_) return true;
  if (!beginning_) return holds(*end_, at);
  const auto who = key(end_, types_.size(), at);
  const auto start = who ? starts_->take(*who) : std::nullopt;
  if (!start) return false;
  const auto words = std::span(start->words).first(probe_.beginning->remembered.size());
  std::ranges::copy(words, out.words.begin() + dif::first_remembered(probe_.place.kind));
  const bool fires = start->of == begins_as_ && (!end_ || holds(*end_, at));
  if (!fires && probe_.counts_last_beginning()) starts_->put(*who, *start);
  return fires;
}

/// Never fires.
bool StablePlace::begins(const ArgumentMoment& at) const {
  if (!holds(*beginning_, at)) return false;
  Start start{.words = {}, .of = begins_as_};
  const std::size_t count = probe_.beginning->remembered.size();
  for (std::size_t n = 0; n < count; ++n) {
    const auto value = evaluator_.evaluate(beginning_->value(n), beginning_->plan, at);
    // A process may not have touched the memory yet that it is about to use.
    if (!value && !probe_.beginning->place.is_of_processes()) return false;
    start.words[n] = value.value_or(0);
  }
  const auto who = key(beginning_, count, at);
  if (!who) return false;
  if (probe_.beginning->key) {
    starts_->put_first(*who, start, adding_);
  } else {
    starts_->put(*who, start);
  }
  return false;
}

}  // namespace ringside::providers
