// In this file: the table of aggregations, parameters of lquantize() and llquantize(), assignments.
#include "dif/d/actions/aggregating.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>

#include "dif/program/aggregate_function.h"
#include "vmm/base/similar_name.h"

namespace ringside::d {

using dif::AggregateFunction;

std::optional<std::uint32_t> AggregationTable::find_aggregation(const std::string& name) const {
  const auto at = known_.find(name);
  return at == known_.end() ? std::nullopt : std::optional(at->second.index);
}

std::string AggregationTable::suggest_similar(std::string_view name) const {
  const std::string nearest =
      similar_name(name, program_.aggregations, std::mem_fn(&dif::Aggregation::name));
  return did_you_mean(nearest, "@");
}

std::uint32_t AggregationTable::add_aggregation(dif::Aggregation aggregation, int line) {
  const auto index = static_cast<std::uint32_t>(program_.aggregations.size());
  known_.emplace(aggregation.name, Known{index, line});
  program_.aggregations.push_back(std::move(aggregation));
  return index;
}

Checked<std::int64_t> QuantizeParameters::parameter(const Expr& call, std::size_t index,
                                                    std::string_view type_tag,
                                                    std::string_view what) {
  TRY(tools_.resolver.resolve(call.list[index]));
  const Expr& e = *call.list[index];
  if (!tools_.types.is_integer(e.type)) {
    return argument_type("D_PROTO_ARG", call, index, "int", tools_.types.name(e.type));
  }
  if (const auto value = tools_.resolver.known_value(e)) return static_cast<std::int64_t>(*value);
  return complain(type_tag, e.at,
                  fmt::format("{}( ) argument #{} ({}) must be an integer constant", *call.text,
                              index + 1, what));
}

Checked<std::uint64_t> QuantizeParameters::lquantize(const Expr& call) {
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
  if (limit <= base) return wrong("D_LQUANT_MISMATCH", 1, "base must be less than its limit");
  if (step <= 0) return wrong("D_LQUANT_STEPTYPE", 3, "step must be a positive integer constant");
  if (step > UINT16_MAX) return wrong("D_LQUANT_STEPVAL", 3, "step must be a 16-bit quantity");
  const std::int64_t levels = (limit - base) / step;
  if (levels == 0) return wrong("D_LQUANT_STEPLARGE", 3, "step is too large: there are no levels");
  if (levels > UINT16_MAX)
    return wrong("D_LQUANT_STEPSMALL", 3, "step is too small: there are too many levels");
  return static_cast<std::uint64_t>(step) << 48 | static_cast<std::uint64_t>(levels) << 32 |
         static_cast<std::uint32_t>(base);
}

/// The greatest bucket fits into 64 bits, and each magnitude's steps fall on whole values.
Checked<void> QuantizeParameters::check_magnitudes(const Expr& call, std::int64_t factor,
                                                   std::int64_t high, std::int64_t steps) {
  const auto wrong = [&](std::string_view tag, std::size_t index, std::string_view text) {
    return complain(tag, call.list[index]->at, fmt::format("llquantize( ) {}", text));
  };
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
  return {};
}

/// Whether there are such buckets.
Checked<void> QuantizeParameters::check_log_linear(const Expr& call, std::int64_t factor,
                                                   std::int64_t low, std::int64_t high,
                                                   std::int64_t steps) {
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
  return check_magnitudes(call, factor, high, steps);
}

Checked<std::uint64_t> QuantizeParameters::llquantize(const Expr& call) {
  const std::int64_t factor = TRY(parameter(call, 1, "D_LLQUANT_FACTORTYPE", "factor"));
  const std::int64_t low = TRY(parameter(call, 2, "D_LLQUANT_LOWTYPE", "low magnitude"));
  const std::int64_t high = TRY(parameter(call, 3, "D_LLQUANT_HIGHTYPE", "high magnitude"));
  const std::int64_t steps = TRY(parameter(call, 4, "D_LLQUANT_NSTEPTYPE", "number of steps"));
  TRY(check_log_linear(call, factor, low, high, steps));
  return static_cast<std::uint64_t>(factor) << 48 | static_cast<std::uint64_t>(low) << 32 |
         static_cast<std::uint64_t>(high) << 16 | static_cast<std::uint64_t>(steps);
}

/// Every use of an aggregation has the same buckets.
Checked<void> QuantizeParameters::check_same(const Expr& call, const dif::Aggregation& known,
                                             std::uint64_t parameters) {
  if (known.parameters == parameters) return {};
  struct Part {
    std::string_view tag, name;
    unsigned shift, bits;
    std::size_t argument;
  };
  // As packed: see dif/program/aggregate_function.h.
  constexpr Part kLinear[] = {{"D_LQUANT_MATCHBASE", "base", 0, 32, 1},
                              {"D_LQUANT_MATCHLIM", "limit", 32, 16, 2},
                              {"D_LQUANT_MATCHSTEP", "step", 48, 16, 3}};
  constexpr Part kLog[] = {{"D_LLQUANT_FACTORMATCH", "factor", 48, 16, 1},
                           {"D_LLQUANT_LOWMATCH", "low magnitude", 32, 16, 2},
                           {"D_LLQUANT_HIGHMATCH", "high magnitude", 16, 16, 3},
                           {"D_LLQUANT_NSTEPMATCH", "number of steps", 0, 16, 4}};
  const bool linear = known.function == dif::AggregateFunction::Lquantize;
  const auto value = [&](const Part& part, std::uint64_t packed) {
    const std::uint64_t field = packed >> part.shift & ((std::uint64_t{1} << part.bits) - 1);
    const bool is_levels = linear && part.argument == 2;  // of lquantize's limit
    return is_levels ? field * (packed >> 48) : field;
  };
  const auto parts = linear ? std::span<const Part>(kLinear) : std::span<const Part>(kLog);
  for (const Part& part : parts) {
    if (value(part, known.parameters) == value(part, parameters)) continue;
    const std::size_t at = std::min(part.argument, call.list.size() - 1);
    return complain(part.tag, call.list[at]->at,
                    fmt::format("{}( ) {} (argument #{}) doesn't match its earlier use on line {}",
                                *call.text, part.name, part.argument + 1, table_.line(known.name)));
  }
  return {};
}

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
    return CodeGenerator::generate_string(tools_.resolver, e);
  if (!tools_.types.value_type(e.type)) {
    return refuse(fmt::format("an expression of type {}", tools_.types.name(e.type)));
  }
  if (expected == nullptr || expected->kind != dif::ValueKind::Integer ||
      !tools_.types.is_scalar(e.type)) {
    // Its size is the aggregation's, too.
    if (tools_.types.by_reference(e.type)) tools_.resolver.namer().fix_size(e);
    return CodeGenerator::generate_value(tools_.resolver, e);
  }
  const std::uint32_t size = expected->size;
  const std::string_view names[] = {"char", "short", "int", "long"};
  const std::string width(names[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3]);
  return CodeGenerator::generate_integer(
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
  const bool fresh = !table_.find_aggregation(*target.text);
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
    action.arguments.push_back(TRY(CodeGenerator::generate_integer(
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
  if (e.compound && !table_.find_aggregation(*target.text)) {
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
  const auto known = table_.find_aggregation(*target.text);
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
  action.aggregations = {table_.add_aggregation(std::move(shape), e.at.line)};
  return action;
}

}  // namespace ringside::d
