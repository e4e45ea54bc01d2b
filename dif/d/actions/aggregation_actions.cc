#include "dif/d/actions/aggregation_actions.h"

#include <fmt/format.h>

#include <algorithm>

#include "dif/d/actions/format_actions.h"
#include "dif/program/aggregate_function.h"

namespace ringside::d {
namespace {

/// Whether printa() can print a key so.
bool fits_key(const dif::ValueType& key, const dif::Conversion& conversion) {
  using dif::ValueKind;
  switch (conversion.kind) {
    case 's':
    case 'S': return key.kind == ValueKind::String || key.kind == ValueKind::Bytes;
    case 'k': return key.kind == ValueKind::KernelStack || key.kind == ValueKind::UserStack;
    case 'a':
    case 'A':
      return key.kind != ValueKind::String && key.kind != ValueKind::Bytes &&
             key.kind != ValueKind::KernelStack && key.kind != ValueKind::UserStack;
    case 'I':
      return key.kind == ValueKind::Integer || key.kind == ValueKind::Bytes ||
             key.kind == ValueKind::String;
    default: return key.kind == ValueKind::Integer;
  }
}

}  // namespace

Checked<std::uint32_t> AggregationActions::known_aggregation(const Expr& call, std::size_t position,
                                                             std::string_view argument_tag,
                                                             std::string_view unknown_tag) {
  const Expr& argument = *call.list[position];
  if (argument.kind != ExprKind::Aggregation) {
    return argument_type(argument_tag, call, position, "aggregation", "expression");
  }
  if (!argument.list.empty()) {
    return argument_type(argument_tag, call, position, "aggregation without keys",
                         "aggregation with keys");
  }
  if (const auto known = table_.find_aggregation(*argument.text)) return *known;
  return complain(unknown_tag, argument.at,
                  fmt::format("undefined aggregation: @{}{}", *argument.text,
                              table_.suggest_similar(*argument.text)));
}

Checked<dif::Action> AggregationActions::on_aggregation(Expr& call, dif::ActionKind kind,
                                                        std::size_t most) {
  struct Tags {
    dif::ActionKind kind;
    std::string_view prototype, argument, bad;
  };
  constexpr Tags kTags[] = {
      {dif::ActionKind::Clear, "D_CLEAR_PROTO", "D_CLEAR_AGGARG", "D_CLEAR_AGGBAD"},
      {dif::ActionKind::Trunc, "D_TRUNC_PROTO", "D_TRUNC_AGGARG", "D_TRUNC_AGGBAD"},
      {dif::ActionKind::Normalize, "D_NORMALIZE_PROTO", "D_NORMALIZE_AGGARG", "D_NORMALIZE_AGGBAD"},
      {dif::ActionKind::Denormalize, "D_NORMALIZE_PROTO", "D_NORMALIZE_AGGARG",
       "D_NORMALIZE_AGGBAD"},
  };
  const Tags& tags = *std::ranges::find(kTags, kind, &Tags::kind);
  const std::size_t least = kind == dif::ActionKind::Normalize ? 2 : 1;
  if (call.list.size() < least || call.list.size() > most) {
    return argument_count(tags.prototype, call, least == most ? fmt::to_string(least) : "1 or 2");
  }
  dif::Action action;
  action.kind = kind;
  action.aggregations = {TRY(known_aggregation(call, 0, tags.argument, tags.bad))};
  return action;
}

Checked<dif::Action> AggregationActions::of_one(Expr& call, dif::ActionKind kind) {
  return on_aggregation(call, kind, 1);
}

Checked<dif::Action> AggregationActions::trunc(Expr& call, dif::ActionKind kind) {
  dif::Action action = TRY(on_aggregation(call, kind, 2));
  if (call.list.size() == 2) {
    Expr& count = *call.list[1];
    TRY(tools_.resolver.resolve(&count));
    if (!tools_.types.is_scalar(count.type)) {
      return complain("D_TRUNC_SCALAR", count.at, "trunc( ) argument #2 must be of scalar type");
    }
    if (const auto known = tools_.resolver.known_value(count);
        known && tools_.types.is_integer(count.type)) {
      action.argument = *known;
      action.has_argument = true;
    } else {
      action.arguments.push_back(
          TRY(CodeGenerator::generate_integer(tools_.resolver, count, tools_.types.int64)));
    }
  }
  return action;
}

Checked<dif::Action> AggregationActions::normalize(Expr& call, dif::ActionKind kind) {
  dif::Action action = TRY(on_aggregation(call, kind, 2));
  Expr& factor = *call.list[1];
  TRY(tools_.resolver.resolve(&factor));
  if (!tools_.types.is_scalar(factor.type)) {
    return complain("D_NORMALIZE_SCALAR", factor.at,
                    "normalize( ) argument #2 must be of scalar type");
  }
  action.arguments.push_back(
      TRY(CodeGenerator::generate_integer(tools_.resolver, factor, tools_.types.uint64)));
  return action;
}

Checked<dif::Action> AggregationActions::printa(Expr& call, dif::ActionKind kind) {
  if (call.list.empty()) return argument_count("D_PROTO_LEN", call, "1 or more");
  dif::Action action;
  action.kind = kind;
  const bool formatted = call.list[0]->kind == ExprKind::String;
  if (formatted && call.list.size() < 2) {
    return argument_count("D_PRINTA_PROTO", call, "2 or more");
  }
  for (std::size_t i = formatted ? 1 : 0; i < call.list.size(); ++i) {
    action.aggregations.push_back(
        TRY(known_aggregation(call, i, "D_PRINTA_AGGARG", "D_PRINTA_AGGBAD")));
    TRY(same_keys(*call.list[i], action.aggregations[0], action.aggregations.back()));
  }
  if (formatted) {
    action.format = *call.list[0]->text;
    TRY(check_printa(call, action));
  }
  return action;
}

Checked<dif::Action> AggregationActions::percentile(Expr& call, dif::ActionKind kind) {
  dif::Action action;
  action.kind = kind;
  action.aggregations = {
      TRY(known_aggregation(call, 0, "D_PERCENTILE_AGGARG", "D_PERCENTILE_AGGBAD"))};
  const dif::Aggregation& aggregation = table_.at(action.aggregations[0]);
  const dif::AggregatingInfo& function = dif::aggregating_info(aggregation.function);
  if (function.result != dif::AggregatingInfo::Result::Buckets) {
    return complain("D_PERCENTILE_FUNC", call.list[0]->at,
                    fmt::format("percentile( ) needs a distribution: @{} is a {}( ), not a "
                                "quantize( ), lquantize( ) or llquantize( )",
                                aggregation.name, function.name));
  }
  if (call.list.size() - 1 > dif::kMostPercentiles) {
    return complain(
        "D_PERCENTILE_ARG", call.at,
        fmt::format("percentile( ) takes at most {} percentiles at a time", dif::kMostPercentiles));
  }
  for (std::size_t i = 1; i < call.list.size(); ++i) {
    action.text += (i == 1 ? "" : ",") + TRY(percentile_text(*call.list[i]));
  }
  return action;
}

/// A constant number above 0 and up to 100, as it is written.
Checked<std::string> AggregationActions::percentile_text(Expr& argument) {
  std::string text;
  if (argument.kind == ExprKind::Decimal) {
    text = *argument.text;
  } else {
    TRY(tools_.resolver.resolve(&argument));
    const auto known = tools_.resolver.known_value(argument);
    if (known) text = fmt::to_string(static_cast<std::int64_t>(*known));
  }
  if (dif::parse_percentiles(text).size() == 1) return text;
  return complain("D_PERCENTILE_ARG", argument.at,
                  "percentile( ) takes constants above 0, up to 100, with four decimals at most: "
                  "50, 99.9");
}

/// Aggregations that are printed together are joined on their keys.
Checked<void> AggregationActions::same_keys(const Expr& e, std::uint32_t first,
                                            std::uint32_t other) {
  const auto& a = table_.at(first).keys;
  const auto& b = table_.at(other).keys;
  if (a.size() != b.size()) {
    return complain("D_PRINTA_AGGKEY", e.at,
                    fmt::format("printa( ) aggregation @{} has {} keys, and @{} has {}", *e.text,
                                b.size(), table_.at(first).name, a.size()));
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].kind == b[i].kind && a[i].size == b[i].size) continue;
    return complain("D_PRINTA_AGGPROTO", e.at,
                    fmt::format("printa( ) key #{} of aggregation @{} is of another type than that "
                                "of @{}",
                                i + 1, *e.text, table_.at(first).name));
  }
  return {};
}

/// The width or precision of a conversion is a key, too, where the format says `*`.
Checked<void> AggregationActions::star_key(const Expr& call,
                                           const std::vector<dif::ValueType>& keys,
                                           std::size_t index, std::size_t number) {
  if (index >= keys.size()) {
    return complain("D_PRINTF_DYN_PROTO", call.at,
                    fmt::format("printa( ) prototype mismatch: conversion #{} has no key for its "
                                "width or precision",
                                number));
  }
  if (keys[index].kind == dif::ValueKind::Integer) return {};
  return complain("D_PRINTF_DYN_TYPE", call.at,
                  fmt::format("printa( ) key #{} is incompatible with conversion #{}: a width or "
                              "precision must be an integer",
                              index + 1, number));
}

Checked<void> AggregationActions::check_printa(const Expr& call, const dif::Action& action) {
  const auto conversions = TRY(conversions_of(*call.list[0], "printa"));
  const auto& keys = table_.at(action.aggregations[0]).keys;
  std::size_t next = 0, number = 0;
  for (const dif::Conversion& conversion : conversions) {
    if (conversion.kind == 0) continue;
    ++number;
    for (int stars = conversion.star_width + conversion.star_precision; stars > 0; --stars) {
      TRY(star_key(call, keys, next++, number));
    }
    if (conversion.takes_aggregation) {
      if (conversion.kind != 's' && conversion.kind != 'S') continue;
      return complain(
          "D_PRINTF_ARG_TYPE", call.at,
          fmt::format("printa( ) conversion #{} (%@{}) is no number's", number, conversion.kind));
    }
    if (next == keys.size()) {
      return complain("D_PRINTF_ARG_PROTO", call.at,
                      fmt::format("printa( ) prototype mismatch: conversion #{} (%{}) is missing a "
                                  "corresponding value argument",
                                  number, conversion.kind));
    }
    if (!fits_key(keys[next], conversion)) {
      return complain("D_PRINTF_ARG_TYPE", call.at,
                      fmt::format("printa( ) key #{} is incompatible with conversion #{} (%{})",
                                  next + 1, number, conversion.kind));
    }
    ++next;
  }
  return {};
}

}  // namespace ringside::d
