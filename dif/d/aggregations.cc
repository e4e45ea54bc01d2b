// Aggregations: @name[keys] = function(arguments), and the actions that take @name.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dif/d/actions.h"

namespace ringside::d {
namespace {

using dif::AggregateFunction;

struct FunctionRow {
  std::string_view name;
  AggregateFunction function;
  std::size_t least, most;
};

constexpr FunctionRow kFunctions[] = {
    {"count", AggregateFunction::Count, 0, 0},
    {"min", AggregateFunction::Min, 1, 1},
    {"max", AggregateFunction::Max, 1, 1},
    {"avg", AggregateFunction::Avg, 1, 1},
    {"sum", AggregateFunction::Sum, 1, 1},
    {"stddev", AggregateFunction::Stddev, 1, 1},
    {"quantize", AggregateFunction::Quantize, 1, 2},
    {"lquantize", AggregateFunction::Lquantize, 3, 5},
    {"llquantize", AggregateFunction::Llquantize, 5, 6},
};

constexpr std::size_t kMaxKeys = 32;

}  // namespace

/// A key's object; `expected` is what the aggregation's earlier uses settled.
Checked<dif::Difo> ActionBuilder::key(Expr& e, const dif::ValueType* expected) {
  TRY(resolver_.resolve(&e));
  const bool text =
      types_.is_string(e.type) || (types_.is_array(e.type) && types_.is_string_like(e.type));
  const bool wants_text = expected != nullptr && expected->kind == dif::ValueKind::String;
  if (text || (wants_text && types_.is_string_like(e.type)))
    return CodeGenerator::string(resolver_, e);
  if (!types_.value_type(e.type)) {
    return complain("D_KEY_TYPE", e.at,
                    fmt::format("a value of type {} cannot be a key", types_.name(e.type)));
  }
  if (expected == nullptr || expected->kind != dif::ValueKind::Integer ||
      !types_.is_scalar(e.type)) {
    return CodeGenerator::value(resolver_, e);
  }
  const std::uint32_t size = expected->size;
  const std::string_view names[] = {"char", "short", "int", "long"};
  const std::string width(names[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3]);
  return CodeGenerator::integer(
      resolver_, e,
      types_.named((expected->is_signed ? size == 1 ? "signed " : "" : "unsigned ") + width));
}

Checked<void> ActionBuilder::aggregate_keys(dif::Action& action, const Expr& target,
                                            std::vector<dif::ValueType>& keys) {
  const bool fresh = !aggregations_.contains(*target.text);
  if (target.list.size() > kMaxKeys) {
    return complain("D_PROTO_LEN", target.at,
                    fmt::format("@{} has more than {} keys", *target.text, kMaxKeys));
  }
  if (!fresh && keys.size() != target.list.size()) {
    return complain(
        "D_PROTO_LEN", target.at,
        fmt::format("@{}[ ] prototype mismatch: {} key{} passed, {} expected", *target.text,
                    target.list.size(), target.list.size() == 1 ? "" : "s", keys.size()));
  }
  for (std::size_t i = 0; i < target.list.size(); ++i) {
    Expr& part = *target.list[i];
    action.arguments.push_back(TRY(key(part, fresh ? nullptr : &keys[i])));
    const dif::ValueType& made = action.arguments.back().result;
    if (fresh) {
      keys.push_back(made);
    } else if (made.kind != keys[i].kind || made.size != keys[i].size) {
      return complain("D_PROTO_ARG", part.at,
                      fmt::format("@{}[ ] key #{} is incompatible with prototype: {} passed",
                                  *target.text, i + 1, types_.name(part.type)));
    }
  }
  return {};
}

Checked<std::int64_t> ActionBuilder::parameter(const Expr& call, std::size_t index,
                                               std::string_view type_tag, std::string_view what) {
  TRY(resolver_.resolve(call.list[index]));
  const Expr& e = *call.list[index];
  if (e.constant && types_.is_integer(e.type)) return static_cast<std::int64_t>(*e.constant);
  return complain(type_tag, e.at,
                  fmt::format("{}( ) argument #{} ({}) must be an integer constant", *call.text,
                              index + 1, what));
}

Checked<std::uint64_t> ActionBuilder::lquantize(const Expr& call) {
  const std::int64_t base = TRY(parameter(call, 1, "D_LQUANT_BASETYPE", "base"));
  const std::int64_t limit = TRY(parameter(call, 2, "D_LQUANT_LIMTYPE", "limit"));
  const std::int64_t step =
      call.list.size() > 3 ? TRY(parameter(call, 3, "D_LQUANT_STEPTYPE", "step")) : 1;
  const auto wrong = [&](std::string_view tag, std::size_t index, std::string_view text) {
    return complain(tag, call.list[std::min(index, call.list.size() - 1)]->at,
                    fmt::format("lquantize( ) {}", text));
  };
  if (base < INT32_MIN || base > INT32_MAX)
    return wrong("D_LQUANT_BASEVAL", 1, "base must be a 32-bit quantity");
  if (limit < INT32_MIN || limit > INT32_MAX)
    return wrong("D_LQUANT_LIMVAL", 2, "limit must be a 32-bit quantity");
  if (limit < base) return wrong("D_LQUANT_MISMATCH", 1, "base must be less than its limit");
  if (step <= 0 || step > UINT16_MAX)
    return wrong("D_LQUANT_STEPVAL", 3, "step must be a positive 16-bit quantity");
  const std::int64_t levels = (limit - base) / step;
  if (levels == 0) return wrong("D_LQUANT_STEPLARGE", 3, "step is too large: there are no levels");
  if (levels > UINT16_MAX)
    return wrong("D_LQUANT_STEPSMALL", 3, "step is too small: there are too many levels");
  return static_cast<std::uint64_t>(step) << 48 | static_cast<std::uint64_t>(levels) << 32 |
         static_cast<std::uint32_t>(base);
}

Checked<std::uint64_t> ActionBuilder::llquantize(const Expr& call) {
  const std::int64_t factor = TRY(parameter(call, 1, "D_LLQUANT_FACTORTYPE", "factor"));
  const std::int64_t low = TRY(parameter(call, 2, "D_LLQUANT_LOWTYPE", "low magnitude"));
  const std::int64_t high = TRY(parameter(call, 3, "D_LLQUANT_HIGHTYPE", "high magnitude"));
  const std::int64_t steps = TRY(parameter(call, 4, "D_LLQUANT_NSTEPTYPE", "number of steps"));
  const auto wrong = [&](std::string_view tag, std::size_t index, std::string_view text) {
    return complain(tag, call.list[index]->at, fmt::format("llquantize( ) {}", text));
  };
  const auto fits = [](std::int64_t value) { return value >= 0 && value <= UINT16_MAX; };
  if (!fits(factor))
    return wrong("D_LLQUANT_FACTORVAL", 1, "factor must be an unsigned 16-bit quantity");
  if (!fits(low))
    return wrong("D_LLQUANT_LOWVAL", 2, "low magnitude must be an unsigned 16-bit quantity");
  if (!fits(high))
    return wrong("D_LLQUANT_HIGHVAL", 3, "high magnitude must be an unsigned 16-bit quantity");
  if (!fits(steps))
    return wrong("D_LLQUANT_NSTEPVAL", 4, "number of steps must be an unsigned 16-bit quantity");
  if (factor < 2) return wrong("D_LLQUANT_FACTORSMALL", 1, "factor must be two or more");
  if (low >= high)
    return wrong("D_LLQUANT_MAGRANGE", 2, "high magnitude must be greater than low magnitude");
  if (steps < factor)
    return wrong("D_LLQUANT_FACTORNSTEPS", 4,
                 "factor must not be greater than the number of steps");
  std::int64_t top = 1;
  for (std::int64_t i = 0; i <= high; ++i) {
    if (__builtin_mul_overflow(top, factor, &top)) {
      return wrong("D_LLQUANT_MAGTOOBIG", 3,
                   "factor raised to the power of the high magnitude overflows 64 bits");
    }
  }
  // A magnitude's steps must fall on whole values: the factor divides the steps, or the other way.
  std::int64_t power = factor;
  while (power < steps) power *= factor;
  if (steps % factor != 0 || power % steps != 0) {
    return wrong("D_LLQUANT_FACTOREVEN", 1,
                 "factor must evenly divide the number of steps, and the steps a power of it");
  }
  return static_cast<std::uint64_t>(factor) << 48 | static_cast<std::uint64_t>(low) << 32 |
         static_cast<std::uint64_t>(high) << 16 | static_cast<std::uint64_t>(steps);
}

/// Adds the value, and the increment where the call has one at that position (0: it never has).
/// Answers whether the value is signed.
Checked<bool> ActionBuilder::aggregate_values(dif::Action& action, const Expr& call,
                                              std::size_t increment) {
  const auto add = [&](std::size_t index) -> Checked<bool> {
    Expr& value = *call.list[index];
    TRY(resolver_.resolve(&value));
    if (!types_.is_scalar(types_.decay(value.type))) {
      return complain(
          "D_AGG_SCALAR", value.at,
          fmt::format("{}( ) argument #{} must be of scalar type", *call.text, index + 1));
    }
    const bool is_signed = types_.is_integer(value.type) && types_.is_signed(value.type);
    action.arguments.push_back(
        TRY(CodeGenerator::integer(resolver_, value, is_signed ? types_.int64 : types_.uint64)));
    return is_signed;
  };
  if (call.list.empty()) return true;
  const bool is_signed = TRY(add(0));
  if (increment != 0 && increment < call.list.size()) {
    TRY(add(increment));
    action.quantize_increment = true;
  }
  return is_signed;
}

Checked<dif::Action> ActionBuilder::aggregate(Expr& e) {
  const Expr& target = *e.a;
  Expr& call = *e.b;
  if (e.compound || call.kind != ExprKind::Call) {
    return complain("D_AGG_NULL", e.at,
                    fmt::format("@{} must be assigned an aggregating function", *target.text));
  }
  const auto row = std::ranges::find(kFunctions, std::string_view(*call.text), &FunctionRow::name);
  if (row == std::end(kFunctions)) {
    return complain("D_AGG_FUNC", call.at,
                    fmt::format("{}( ) is not an aggregating function", *call.text));
  }
  if (call.list.size() < row->least || call.list.size() > row->most) {
    const bool quantize = row->function == AggregateFunction::Quantize;
    return argument_count(quantize ? "D_QUANT_PROTO" : "D_PROTO_LEN", call,
                          row->least == row->most ? fmt::to_string(row->least)
                                                  : fmt::format("{} to {}", row->least, row->most));
  }
  const auto known = aggregations_.find(*target.text);
  dif::Aggregation shape;
  if (known != aggregations_.end()) shape = program_.aggregations[known->second];
  if (known != aggregations_.end() && shape.function != row->function) {
    return complain("D_AGG_REDEF", e.at, fmt::format("aggregation redefined: @{}", *target.text));
  }
  dif::Action action;
  action.kind = dif::ActionKind::Aggregate;
  TRY(aggregate_keys(action, target, shape.keys));
  std::uint64_t parameters = 0;
  std::size_t increment = 1;
  if (row->function == AggregateFunction::Lquantize) {
    parameters = TRY(lquantize(call));
    increment = 4;
  }
  if (row->function == AggregateFunction::Llquantize) {
    parameters = TRY(llquantize(call));
    increment = 5;
  }
  const bool is_signed = TRY(aggregate_values(action, call, row->most > 1 ? increment : 0));
  if (known == aggregations_.end()) shape.is_signed = is_signed;
  if (known == aggregations_.end()) {
    shape.name = *target.text;
    shape.function = row->function;
    shape.parameters = parameters;
    action.aggregations = {static_cast<std::uint32_t>(program_.aggregations.size())};
    aggregations_.emplace(*target.text, action.aggregations[0]);
    program_.aggregations.push_back(std::move(shape));
    return action;
  }
  if (shape.parameters != parameters) {
    return complain(
        row->function == AggregateFunction::Lquantize ? "D_LQUANT_MATCHSTEP"
                                                      : "D_LLQUANT_FACTORMATCH",
        call.at,
        fmt::format("{}( ) parameters differ from earlier uses of @{}", *call.text, *target.text));
  }
  action.aggregations = {known->second};
  return action;
}

Checked<std::uint32_t> ActionBuilder::known_aggregation(const Expr& argument,
                                                        std::string_view function,
                                                        std::string_view tag) {
  if (argument.kind != ExprKind::Aggregation) {
    return complain(tag, argument.at,
                    fmt::format("{}( ) argument must be an aggregation", function));
  }
  if (!argument.list.empty()) {
    return complain(tag, argument.at,
                    fmt::format("{}( ) aggregation must be named without keys", function));
  }
  const auto known = aggregations_.find(*argument.text);
  if (known == aggregations_.end()) {
    return complain(tag, argument.at, fmt::format("undefined aggregation: @{}", *argument.text));
  }
  return known->second;
}

Checked<dif::Action> ActionBuilder::on_aggregation(Expr& call, dif::ActionKind kind,
                                                   std::size_t most) {
  struct Tags {
    dif::ActionKind kind;
    std::string_view prototype, bad;
  };
  constexpr Tags kTags[] = {
      {dif::ActionKind::Clear, "D_CLEAR_PROTO", "D_CLEAR_AGGBAD"},
      {dif::ActionKind::Trunc, "D_TRUNC_PROTO", "D_TRUNC_AGGBAD"},
      {dif::ActionKind::Normalize, "D_NORMALIZE_PROTO", "D_NORMALIZE_AGGBAD"},
      {dif::ActionKind::Denormalize, "D_NORMALIZE_PROTO", "D_NORMALIZE_AGGBAD"},
  };
  const Tags& tags = *std::ranges::find(kTags, kind, &Tags::kind);
  const std::size_t least = kind == dif::ActionKind::Normalize ? 2 : 1;
  if (call.list.size() < least || call.list.size() > most) {
    return argument_count(tags.prototype, call, least == most ? fmt::to_string(least) : "1 or 2");
  }
  dif::Action action;
  action.kind = kind;
  action.aggregations = {TRY(known_aggregation(*call.list[0], *call.text, tags.bad))};
  return action;
}

Checked<dif::Action> ActionBuilder::clear(Expr& call) {
  return on_aggregation(call, dif::ActionKind::Clear, 1);
}

Checked<dif::Action> ActionBuilder::denormalize(Expr& call) {
  return on_aggregation(call, dif::ActionKind::Denormalize, 1);
}

Checked<dif::Action> ActionBuilder::trunc(Expr& call) {
  dif::Action action = TRY(on_aggregation(call, dif::ActionKind::Trunc, 2));
  if (call.list.size() == 2) {
    action.argument =
        static_cast<std::uint64_t>(TRY(parameter(call, 1, "D_TRUNC_SCALAR", "count")));
    action.has_argument = true;
  }
  return action;
}

Checked<dif::Action> ActionBuilder::normalize(Expr& call) {
  dif::Action action = TRY(on_aggregation(call, dif::ActionKind::Normalize, 2));
  Expr& factor = *call.list[1];
  TRY(resolver_.resolve(&factor));
  if (!types_.is_integer(factor.type)) {
    return complain("D_NORMALIZE_SCALAR", factor.at,
                    "normalize( ) argument #2 must be of scalar type");
  }
  action.arguments.push_back(TRY(CodeGenerator::integer(resolver_, factor, types_.uint64)));
  return action;
}

Checked<dif::Action> ActionBuilder::printa(Expr& call) {
  dif::Action action;
  action.kind = dif::ActionKind::Printa;
  const bool formatted = !call.list.empty() && call.list[0]->kind == ExprKind::String;
  if (call.list.size() < (formatted ? 2U : 1U)) {
    return argument_count("D_PRINTA_PROTO", call, formatted ? "2 or more" : "1 or more");
  }
  for (std::size_t i = formatted ? 1 : 0; i < call.list.size(); ++i) {
    action.aggregations.push_back(
        TRY(known_aggregation(*call.list[i], "printa", "D_PRINTA_AGGBAD")));
    const auto& first = program_.aggregations[action.aggregations[0]].keys;
    const auto& keys = program_.aggregations[action.aggregations.back()].keys;
    if (!std::ranges::equal(first, keys, [](const auto& a, const auto& b) {
          return a.kind == b.kind && a.size == b.size;
        })) {
      return complain("D_PRINTA_AGGKEY", call.list[i]->at,
                      fmt::format("printa( ) aggregation @{} has other keys than the first one",
                                  *call.list[i]->text));
    }
  }
  if (formatted) {
    action.format = *call.list[0]->text;
    TRY(check_printa(call, action));
  }
  return action;
}

Checked<void> ActionBuilder::check_printa(const Expr& call, const dif::Action& action) {
  const auto conversions = TRY(format(*call.list[0], "printa"));
  const auto& keys = program_.aggregations[action.aggregations[0]].keys;
  std::size_t next = 0, number = 0;
  for (const dif::Conversion& conversion : conversions) {
    if (conversion.kind == 0) continue;
    ++number;
    if (conversion.star_width || conversion.star_precision) {
      return complain(
          "D_PRINTF_ARG_PROTO", call.at,
          fmt::format("printa( ) conversion #{} has no argument for its width or precision",
                      number));
    }
    if (conversion.takes_aggregation) continue;
    if (next == keys.size()) {
      return complain("D_PRINTF_ARG_PROTO", call.at,
                      fmt::format("printa( ) prototype mismatch: conversion #{} (%{}) is missing a "
                                  "corresponding value argument",
                                  number, conversion.kind));
    }
    const bool text = conversion.kind == 's' || conversion.kind == 'S';
    if (text != (keys[next].kind != dif::ValueKind::Integer)) {
      return complain("D_PRINTF_ARG_TYPE", call.at,
                      fmt::format("printa( ) key #{} is incompatible with conversion #{} (%{})",
                                  next + 1, number, conversion.kind));
    }
    ++next;
  }
  return {};
}

}  // namespace ringside::d
