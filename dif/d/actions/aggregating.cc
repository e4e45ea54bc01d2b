#include "dif/d/actions/aggregating.h"

#include <fmt/format.h>

#include <algorithm>

#include "dif/program/aggregate_function.h"

namespace ringside::d {

using dif::AggregateFunction;

/// A key's object; `expected` is what the aggregation's earlier uses settled.
Checked<dif::Difo> Aggregating::key(Expr& e, const dif::ValueType* expected) {
  if (is_code_call(e)) return code_.value(e);
  const auto refuse = [&](std::string_view what) {
    return complain("D_KEY_TYPE", e.at, fmt::format("{} may not be used as a key", what));
  };
  if (e.kind == ExprKind::Aggregation) return refuse("an aggregation");
  TRY(tools_.resolver.resolve(&e, "D_KEY_TYPE"));
  if (tools_.types.is_float(e.type)) {
    return complain("D_PROTO_ARG", e.at,
                    fmt::format("a key may not be of type {}", tools_.types.name(e.type)));
  }
  const bool text = tools_.types.is_string(e.type) ||
                    (tools_.types.is_array(e.type) && tools_.types.is_string_like(e.type));
  const bool wants_text = expected != nullptr && expected->kind == dif::ValueKind::String;
  if (text || (wants_text && tools_.types.is_string_like(e.type)))
    return CodeGenerator::string(tools_.resolver, e);
  if (!tools_.types.value_type(e.type)) {
    return refuse(fmt::format("an expression of type {}", tools_.types.name(e.type)));
  }
  if (expected == nullptr || expected->kind != dif::ValueKind::Integer ||
      !tools_.types.is_scalar(e.type)) {
    // Its size is the aggregation's, too.
    if (tools_.types.by_reference(e.type)) tools_.resolver.namer().fix_size(e);
    return CodeGenerator::value(tools_.resolver, e);
  }
  const std::uint32_t size = expected->size;
  const std::string_view names[] = {"char", "short", "int", "long"};
  const std::string width(names[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3]);
  return CodeGenerator::integer(
      tools_.resolver, e,
      tools_.types.named((expected->is_signed ? size == 1 ? "signed " : "" : "unsigned ") + width));
}

namespace {

/// A key that has room for both stacks.
dif::ValueType common_stack(const dif::ValueType& a, const dif::ValueType& b) {
  const dif::ValueKind kind = a.kind == b.kind ? a.kind : dif::ValueKind::UserStack;
  return {kind, false, std::max(dif::stack_key_size(a, kind), dif::stack_key_size(b, kind))};
}

}  // namespace

Checked<void> Aggregating::aggregate_keys(dif::Action& action, const Expr& target,
                                          std::vector<dif::ValueType>& keys) {
  const bool fresh = !table_.find(*target.text);
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
    } else if (dif::is_stack(made.kind) && dif::is_stack(keys[i].kind)) {
      keys[i] = common_stack(made, keys[i]);
    } else if (made.kind != keys[i].kind || made.size != keys[i].size) {
      return complain("D_PROTO_ARG", part.at,
                      fmt::format("@{}[ ] key #{} is incompatible with prototype: {} passed",
                                  *target.text, i + 1, tools_.types.name(part.type)));
    }
  }
  return {};
}

/// Adds the value, and the increment where the call has one at that position (0: it never has).
Checked<void> Aggregating::aggregate_values(dif::Action& action, const Expr& call,
                                            std::size_t increment) {
  const auto add = [&](std::size_t index) -> Checked<void> {
    Expr& value = *call.list[index];
    TRY(tools_.resolver.resolve(&value));
    if (!tools_.types.is_scalar(tools_.types.decay(value.type))) {
      return complain(
          index == 0 ? "D_AGG_SCALAR" : "D_PROTO_ARG", value.at,
          fmt::format("{}( ) argument #{} must be of scalar type", *call.text, index + 1));
    }
    const bool is_signed =
        tools_.types.is_integer(value.type) && tools_.types.is_signed(value.type);
    action.arguments.push_back(TRY(CodeGenerator::integer(
        tools_.resolver, value, is_signed ? tools_.types.int64 : tools_.types.uint64)));
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

Checked<void> Aggregating::same_function(const Expr& e, const dif::Aggregation& known,
                                         AggregateFunction function) {
  if (known.function == function) return {};
  const auto name = [](AggregateFunction f) { return dif::aggregating_info(f).name; };
  return complain(
      "D_AGG_REDEF", e.at,
      fmt::format("aggregation redefined: @{}: current: {}( ), previous: {}( ) on "
                  "line {}",
                  known.name, name(function), name(known.function), table_.line(known.name)));
}

/// The function that is assigned, with as many arguments as it takes.
Checked<dif::AggregatingInfo> Aggregating::function_of(Expr& e) {
  const Expr& target = *e.a;
  Expr& call = *e.b;
  const auto no_function = [&] {
    return complain(
        "D_AGG_FUNC", call.at,
        fmt::format("@{} must be assigned the result of an aggregating function", *target.text));
  };
  if (e.compound && !table_.find(*target.text)) {
    return complain("D_VAR_UNDEF", target.at,
                    fmt::format("@{} has not yet been declared or assigned", *target.text));
  }
  if (call.kind != ExprKind::Call) TRY(tools_.resolver.resolve(&call));
  if (e.compound || call.kind != ExprKind::Call) return no_function();
  const auto row = dif::find_aggregating(*call.text);
  if (!row) {
    const auto resolved = tools_.resolver.resolve(&call);
    if (resolved || resolved.error().tag != "D_FUNC_UNDEF") return no_function();
    return tl::make_unexpected(resolved.error());
  }
  if (call.list.size() < row->least || call.list.size() > row->most) {
    return argument_count("D_PROTO_LEN", call,
                          row->least == row->most ? fmt::to_string(row->least)
                                                  : fmt::format("{} to {}", row->least, row->most));
  }
  return *row;
}

Checked<dif::Action> Aggregating::build(Expr& e) {
  const dif::AggregatingInfo row = TRY(function_of(e));
  const Expr& target = *e.a;
  const Expr& call = *e.b;
  const auto known = table_.find(*target.text);
  dif::Aggregation shape;
  if (known) {
    shape = table_.at(*known);
    TRY(same_function(e, shape, row.function));
  }
  dif::Action action;
  action.kind = dif::ActionKind::Aggregate;
  TRY(aggregate_keys(action, target, shape.keys));
  std::uint64_t parameters = 0;
  if (row.function == AggregateFunction::Lquantize) parameters = TRY(quantize_.lquantize(call));
  if (row.function == AggregateFunction::Llquantize) parameters = TRY(quantize_.llquantize(call));
  // The increment of the quantize family comes last.
  TRY(aggregate_values(action, call, row.most > 1 ? row.most - 1U : 0U));
  if (known) {
    TRY(quantize_.check_same(call, shape, parameters));
    table_.set_keys(*known, std::move(shape.keys));
    action.aggregations = {*known};
    return action;
  }
  shape.name = *target.text;
  shape.function = row.function;
  shape.parameters = parameters;
  action.aggregations = {table_.add(std::move(shape), e.at.line)};
  return action;
}

}  // namespace ringside::d
