// Aggregations: @name[keys] = function(arguments).
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/resolve/actions.h"
#include "dif/engine/aggregate_function.h"

namespace ringside::d {

using dif::AggregateFunction;

/// A key's object; `expected` is what the aggregation's earlier uses settled.
Checked<dif::Difo> ActionBuilder::key(Expr& e, const dif::ValueType* expected) {
  if (is_code_call(e)) return code_value(e);
  const auto refuse = [&](std::string_view what) {
    return complain("D_KEY_TYPE", e.at, fmt::format("{} may not be used as a key", what));
  };
  if (e.kind == ExprKind::Aggregation) return refuse("an aggregation");
  TRY(resolver_.resolve(&e));
  if (types_.is_float(e.type)) {
    return complain("D_PROTO_ARG", e.at,
                    fmt::format("a key may not be of type {}", types_.name(e.type)));
  }
  const bool text =
      types_.is_string(e.type) || (types_.is_array(e.type) && types_.is_string_like(e.type));
  const bool wants_text = expected != nullptr && expected->kind == dif::ValueKind::String;
  if (text || (wants_text && types_.is_string_like(e.type)))
    return CodeGenerator::string(resolver_, e);
  if (!types_.value_type(e.type)) {
    return refuse(fmt::format("an expression of type {}", types_.name(e.type)));
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
  if (target.list.size() > dif::kMostKeys) {
    return complain("D_PROTO_LEN", target.at,
                    fmt::format("@{} has more than {} keys", *target.text, dif::kMostKeys));
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

/// Adds the value, and the increment where the call has one at that position (0: it never has).
Checked<void> ActionBuilder::aggregate_values(dif::Action& action, const Expr& call,
                                              std::size_t increment) {
  const auto add = [&](std::size_t index) -> Checked<void> {
    Expr& value = *call.list[index];
    TRY(resolver_.resolve(&value));
    if (!types_.is_scalar(types_.decay(value.type))) {
      return complain(
          index == 0 ? "D_AGG_SCALAR" : "D_PROTO_ARG", value.at,
          fmt::format("{}( ) argument #{} must be of scalar type", *call.text, index + 1));
    }
    const bool is_signed = types_.is_integer(value.type) && types_.is_signed(value.type);
    action.arguments.push_back(
        TRY(CodeGenerator::integer(resolver_, value, is_signed ? types_.int64 : types_.uint64)));
    return {};
  };
  if (call.list.empty()) return {};
  TRY(add(0));
  if (increment != 0 && increment < call.list.size()) {
    TRY(add(increment));
    action.quantize_increment = true;
  }
  return {};
}

Checked<void> ActionBuilder::same_function(const Expr& e, const dif::Aggregation& known,
                                           AggregateFunction function) {
  if (known.function == function) return {};
  const auto name = [](AggregateFunction f) { return dif::aggregating_info(f).name; };
  return complain("D_AGG_REDEF", e.at,
                  fmt::format("aggregation redefined: @{}: current: {}( ), previous: {}( ) on "
                              "line {}",
                              known.name, name(function), name(known.function),
                              aggregation_lines_[aggregations_[known.name]]));
}

Checked<dif::Action> ActionBuilder::aggregate(Expr& e) {
  const Expr& target = *e.a;
  Expr& call = *e.b;
  const auto no_function = [&] {
    return complain(
        "D_AGG_FUNC", call.at,
        fmt::format("@{} must be assigned the result of an aggregating function", *target.text));
  };
  if (e.compound && !aggregations_.contains(*target.text)) {
    return complain("D_VAR_UNDEF", target.at,
                    fmt::format("@{} has not yet been declared or assigned", *target.text));
  }
  if (call.kind != ExprKind::Call) TRY(resolver_.resolve(&call));
  if (e.compound || call.kind != ExprKind::Call) return no_function();
  const auto row = dif::find_aggregating(*call.text);
  if (!row) {
    const auto resolved = resolver_.resolve(&call);
    if (resolved || resolved.error().tag != "D_FUNC_UNDEF") return no_function();
    return tl::make_unexpected(resolved.error());
  }
  if (call.list.size() < row->least || call.list.size() > row->most) {
    return argument_count("D_PROTO_LEN", call,
                          row->least == row->most ? fmt::to_string(row->least)
                                                  : fmt::format("{} to {}", row->least, row->most));
  }
  const auto known = aggregations_.find(*target.text);
  dif::Aggregation shape;
  if (known != aggregations_.end()) {
    shape = program_.aggregations[known->second];
    TRY(same_function(e, shape, row->function));
  }
  dif::Action action;
  action.kind = dif::ActionKind::Aggregate;
  TRY(aggregate_keys(action, target, shape.keys));
  std::uint64_t parameters = 0;
  if (row->function == AggregateFunction::Lquantize) parameters = TRY(lquantize(call));
  if (row->function == AggregateFunction::Llquantize) parameters = TRY(llquantize(call));
  // The increment of the quantize family comes last.
  TRY(aggregate_values(action, call, row->most > 1 ? row->most - 1U : 0U));
  if (known != aggregations_.end()) {
    TRY(same_parameters(call, shape, parameters));
    action.aggregations = {known->second};
    return action;
  }
  shape.name = *target.text;
  shape.function = row->function;
  shape.parameters = parameters;
  action.aggregations = {static_cast<std::uint32_t>(program_.aggregations.size())};
  aggregations_.emplace(*target.text, action.aggregations[0]);
  aggregation_lines_.emplace(action.aggregations[0], e.at.line);
  program_.aggregations.push_back(std::move(shape));
  return action;
}

}  // namespace ringside::d
