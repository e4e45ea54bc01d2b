#include "dif/d/actions/value_actions.h"

#include <fmt/format.h>

#include "dif/d/actions/action_tools.h"
#include "dif/verify/verify.h"

namespace ringside::d {

using dif::ActionKind;

Checked<dif::Action> ValueActions::effect(Expr& e) {
  TRY(tools_.resolver.resolve(&e));
  dif::Action action;
  action.kind = ActionKind::Evaluate;
  action.arguments.push_back(TRY(CodeGenerator::generate_effect(tools_.resolver, e)));
  return action;
}

/// Resolves what trace() or print() is to record. `tags` begins the names of their tags.
Checked<void> ValueActions::recordable(Expr& value, std::string_view function,
                                       std::string_view tags) {
  struct Refusal {
    std::string_view trace, print, what;
  };
  constexpr Refusal kAggregation = {"D_TRACE_AGG", "D_PRINT_AGG", "an aggregation"};
  constexpr Refusal kVoid = {"D_TRACE_VOID", "D_PRINT_VOID", "a void expression"};
  constexpr Refusal kDynamic = {"D_TRACE_DYN", "D_PRINT_DYN", "a dynamic expression"};
  const auto refuse = [&](const Refusal& why) {
    return complain(tags == "D_TRACE" ? why.trace : why.print, value.at,
                    fmt::format("{}( ) may not be applied to {}", function, why.what));
  };
  const bool indexed = value.kind == ExprKind::Index && value.a->kind == ExprKind::Aggregation;
  if (indexed || value.kind == ExprKind::Aggregation) return refuse(kAggregation);
  if (value.kind == ExprKind::Call && is_action(*value.text) && !is_code_call(value)) {
    return refuse(dif::find_aggregating(*value.text) ? kDynamic : kVoid);
  }
  TRY(tools_.resolver.resolve(&value, tags == "D_TRACE" ? kDynamic.trace : kDynamic.print));
  if (tools_.types.is_void(value.type)) return refuse(kVoid);
  return {};
}

Checked<dif::Action> ValueActions::trace(Expr& call, ActionKind) {
  Expr& value = *call.list[0];
  TRY(recordable(value, "trace", "D_TRACE"));
  dif::Action action;
  action.kind = ActionKind::Trace;
  action.arguments.push_back(TRY(CodeGenerator::generate_value(tools_.resolver, value)));
  if (const auto shape = is_code_call(value) ? std::nullopt : tools_.shape_of(value)) {
    action.shapes = {*shape};
  }
  return action;
}

Checked<dif::Action> ValueActions::print(Expr& call, ActionKind) {
  Expr& value = *call.list[0];
  TRY(recordable(value, "print", "D_PRINT"));
  const auto shape = tools_.shape_of(value);
  if (!shape) {
    return complain("D_UNKNOWN", value.at,
                    fmt::format("print( ) cannot describe {}: it is nested too deep or has too "
                                "many parts",
                                tools_.types.name(value.type)));
  }
  dif::Action action;
  action.kind = ActionKind::Print;
  action.shapes = {*shape};
  action.arguments.push_back(TRY(CodeGenerator::generate_value(tools_.resolver, value)));
  return action;
}

/// The first argument, which has been resolved.
Checked<void> ValueActions::check_address(std::string_view tag, const Expr& call) const {
  const TypeId type = call.list[0]->type;
  const bool is_address =
      tools_.types.is_scalar(tools_.types.decay(type)) && !tools_.types.is_string(type);
  if (is_address) return {};
  return argument_type(tag, call, 0, "pointer or integer", tools_.types.name(type));
}

Checked<dif::Action> ValueActions::tracemem(Expr& call, ActionKind) {
  if (call.list.size() > 3) return argument_count("D_TRACEMEM_ARGS", call, "2 or 3");
  for (Expr* argument : call.list) TRY(tools_.resolver.resolve(argument));
  const Expr &address = *call.list[0], &most = *call.list[1];
  TRY(check_address("D_TRACEMEM_ADDR", call));
  if (!tools_.types.is_integer(most.type)) {
    return argument_type("D_PROTO_ARG", call, 1, "size_t", tools_.types.name(most.type));
  }
  const auto size = static_cast<std::int64_t>(tools_.resolver.known_value(most).value_or(0));
  if (size <= 0 || size > dif::kMostRecordBytes) {
    return complain(
        "D_TRACEMEM_SIZE", most.at,
        "tracemem( ) argument #2 must be a non-zero positive integral constant expression");
  }
  dif::Action action;
  action.kind = ActionKind::Tracemem;
  action.arguments.push_back(
      TRY(CodeGenerator::generate_integer(tools_.resolver, address, tools_.types.uint64)));
  action.argument = static_cast<std::uint64_t>(size);
  action.has_argument = true;
  if (call.list.size() == 3) {
    const Expr& bytes = *call.list[2];
    if (!tools_.types.is_integer(bytes.type)) {
      return argument_type("D_TRACEMEM_DYNSIZE", call, 2, "integer", tools_.types.name(bytes.type));
    }
    action.kind = ActionKind::TracememDynamic;
    action.arguments.push_back(
        TRY(CodeGenerator::generate_integer(tools_.resolver, bytes, tools_.types.uint64)));
  }
  return action;
}

Checked<dif::Action> ValueActions::pcap(Expr& call, ActionKind kind) {
  for (Expr* argument : call.list) TRY(tools_.resolver.resolve(argument));
  const Expr &packet = *call.list[0], &link = *call.list[1];
  TRY(check_address("D_PCAP_ADDR", call));
  if (!tools_.types.is_integer(link.type)) {
    return argument_type("D_PCAP_PROTO", call, 1, "integer", tools_.types.name(link.type));
  }
  dif::Action action;
  action.kind = kind;
  for (const Expr* argument : {&packet, &link}) {
    action.arguments.push_back(
        TRY(CodeGenerator::generate_integer(tools_.resolver, *argument, tools_.types.uint64)));
  }
  return action;
}

Checked<dif::Action> ValueActions::setopt(Expr& call, ActionKind) {
  dif::Action action;
  action.kind = ActionKind::Setopt;
  for (std::size_t i = 0; i < call.list.size(); ++i) {
    Expr& argument = *call.list[i];
    if (argument.kind == ExprKind::String) {
      if (i == 0 && argument.text->empty())
        return argument_type("D_PROTO_ARG", call, i, "name of an option", "empty string");
      (i == 0 ? action.format : action.text) = *argument.text;
      continue;
    }
    TRY(tools_.resolver.resolve(&argument));
    if (!tools_.types.is_string_like(argument.type))
      return argument_type("D_PROTO_ARG", call, i, "string", tools_.types.name(argument.type));
    action.arguments.push_back(TRY(CodeGenerator::generate_string(tools_.resolver, argument)));
  }
  return action;
}

Checked<dif::Action> ValueActions::without_arguments(Expr&, ActionKind kind) {
  dif::Action action;
  action.kind = kind;
  return action;
}

Checked<dif::Action> ValueActions::of_int(Expr& call, ActionKind kind) {
  return of_number(call, kind, tools_.types.int32);
}

Checked<dif::Action> ValueActions::of_long(Expr& call, ActionKind kind) {
  return of_number(call, kind, tools_.types.int64);
}

Checked<dif::Action> ValueActions::of_number(const Expr& call, ActionKind kind, TypeId type) {
  Expr& number = *call.list[0];
  TRY(tools_.resolver.resolve(&number));
  if (!tools_.types.is_integer(number.type)) {
    return argument_type("D_PROTO_ARG", call, 0, tools_.types.name(type),
                         tools_.types.name(number.type));
  }
  dif::Action action;
  action.kind = kind;
  action.arguments.push_back(TRY(CodeGenerator::generate_integer(tools_.resolver, number, type)));
  return action;
}

}  // namespace ringside::d
