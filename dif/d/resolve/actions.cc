// The table of actions, and those that take plain values.
#include "dif/d/resolve/actions.h"

#include <fmt/format.h>

#include <algorithm>

#include "dif/verify/verify.h"

namespace ringside::d {

const ActionBuilder::Row ActionBuilder::kRows[] = {
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  {text, &ActionBuilder::build},
#define DIF_CODE_ACTION(number, text, least, most, value, bytes) {text, &ActionBuilder::code},
#include "dif/program/actions.def"
};

tl::unexpected<Diagnostic> argument_count(std::string_view tag, const Expr& call,
                                          std::string_view expected) {
  return complain(tag, call.at,
                  fmt::format("{}( ) prototype mismatch: {} arg{} passed, {} expected", *call.text,
                              call.list.size(), call.list.size() == 1 ? "" : "s", expected));
}

tl::unexpected<Diagnostic> argument_type(std::string_view tag, const Expr& call,
                                         std::size_t position, std::string_view prototype,
                                         std::string_view passed) {
  return complain(tag, call.list[position]->at,
                  fmt::format("{}( ) argument #{} is incompatible with prototype: prototype: {}, "
                              "argument: {}",
                              *call.text, position + 1, prototype, passed));
}

Checked<void> ActionBuilder::prepare(Expr& e) {
  const bool assigns = e.kind == ExprKind::Assign && e.a->kind == ExprKind::Aggregation;
  if (!assigns) {
    const Expr* const target = e.kind == ExprKind::Assign ? e.a : &e;
    const bool indexed =
        target->kind == ExprKind::Index && target->a->kind == ExprKind::Aggregation;
    return indexed ? Checked<void>{} : resolver_.resolve_dynamic(&e);
  }
  for (Expr* key : e.a->list) {
    if (key->kind != ExprKind::Aggregation) TRY(resolver_.resolve_dynamic(key));
  }
  TRY(resolver_.resolve_dynamic(e.b));
  resolver_.declare_aggregation(*e.a->text);
  return {};
}

Checked<dif::Action> ActionBuilder::build(Expr& e) {
  dif::Action action = TRY(statement(e));
  TRY(check_order(e, action));
  return action;
}

Checked<dif::Action> ActionBuilder::statement(Expr& e) {
  const Expr* target = e.kind == ExprKind::Assign ? e.a : &e;
  if (target->kind == ExprKind::Index && target->a->kind == ExprKind::Aggregation) {
    return complain("D_AGG_MDIM", e.at,
                    fmt::format("aggregation @{} is not a multi-dimensional array: separate its "
                                "keys with commas",
                                *target->a->text));
  }
  if (e.kind == ExprKind::Assign && target->kind == ExprKind::Aggregation) return aggregate(e);
  if (e.kind == ExprKind::Aggregation) {
    return complain(
        "D_AGG_NULL", e.at,
        fmt::format("expression @{} must be assigned an aggregating function", *e.text));
  }
  if (e.kind != ExprKind::Call) return effect(e);
  const auto row = std::ranges::find(kRows, std::string_view(*e.text), &Row::name);
  return row == std::end(kRows) ? effect(e) : (this->*row->handler)(e);
}

Checked<dif::Action> ActionBuilder::effect(Expr& e) {
  TRY(resolver_.resolve(&e));
  dif::Action action;
  action.kind = dif::ActionKind::Evaluate;
  action.arguments.push_back(TRY(CodeGenerator::effect(resolver_, e)));
  return action;
}

/// Resolves what trace() or print() is to record. `tags` begins the names of their tags.
Checked<void> ActionBuilder::recordable(Expr& value, std::string_view function,
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
    const bool has_row =
        std::ranges::find(kRows, std::string_view(*value.text), &Row::name) != std::end(kRows);
    return refuse(has_row ? kVoid : kDynamic);  // what has none is an aggregating function
  }
  TRY(resolver_.resolve(&value, tags == "D_TRACE" ? kDynamic.trace : kDynamic.print));
  if (types_.is_void(value.type)) return refuse(kVoid);
  return {};
}

Checked<dif::Action> ActionBuilder::trace(Expr& call) {
  Expr& value = *call.list[0];
  TRY(recordable(value, "trace", "D_TRACE"));
  dif::Action action;
  action.kind = dif::ActionKind::Trace;
  action.arguments.push_back(TRY(CodeGenerator::value(resolver_, value)));
  if (const auto shape = is_code_call(value) ? std::nullopt : shapes_.add(value.type)) {
    action.shapes = {*shape};
  }
  return action;
}

Checked<dif::Action> ActionBuilder::print(Expr& call) {
  Expr& value = *call.list[0];
  TRY(recordable(value, "print", "D_PRINT"));
  const auto shape = shapes_.add(value.type);
  if (!shape) {
    return complain("D_UNKNOWN", value.at,
                    fmt::format("print( ) cannot describe {}: it is nested too deep or has too "
                                "many parts",
                                types_.name(value.type)));
  }
  dif::Action action;
  action.kind = dif::ActionKind::Print;
  action.shapes = {*shape};
  action.arguments.push_back(TRY(CodeGenerator::value(resolver_, value)));
  return action;
}

Checked<dif::Action> ActionBuilder::tracemem(Expr& call) {
  if (call.list.size() > 3) return argument_count("D_TRACEMEM_ARGS", call, "2 or 3");
  for (Expr* argument : call.list) TRY(resolver_.resolve(argument));
  const Expr &address = *call.list[0], &most = *call.list[1];
  if (!types_.is_scalar(types_.decay(address.type)) || types_.is_string(address.type)) {
    return argument_type("D_TRACEMEM_ADDR", call, 0, "pointer or integer",
                         types_.name(address.type));
  }
  if (!types_.is_integer(most.type)) {
    return argument_type("D_PROTO_ARG", call, 1, "size_t", types_.name(most.type));
  }
  const auto size = static_cast<std::int64_t>(most.constant.value_or(0));
  if (size <= 0 || size > dif::kMostRecordBytes) {
    return complain(
        "D_TRACEMEM_SIZE", most.at,
        "tracemem( ) argument #2 must be a non-zero positive integral constant expression");
  }
  dif::Action action;
  action.kind = dif::ActionKind::Tracemem;
  action.arguments.push_back(TRY(CodeGenerator::integer(resolver_, address, types_.uint64)));
  action.argument = static_cast<std::uint64_t>(size);
  action.has_argument = true;
  if (call.list.size() == 3) {
    const Expr& bytes = *call.list[2];
    if (!types_.is_integer(bytes.type)) {
      return argument_type("D_TRACEMEM_DYNSIZE", call, 2, "integer", types_.name(bytes.type));
    }
    action.kind = dif::ActionKind::TracememDynamic;
    action.arguments.push_back(TRY(CodeGenerator::integer(resolver_, bytes, types_.uint64)));
  }
  return action;
}

Checked<dif::Action> ActionBuilder::setopt(Expr& call) {
  dif::Action action;
  action.kind = dif::ActionKind::Setopt;
  for (std::size_t i = 0; i < call.list.size(); ++i) {
    Expr& argument = *call.list[i];
    if (argument.kind == ExprKind::String) {
      if (i == 0 && argument.text->empty())
        return argument_type("D_PROTO_ARG", call, i, "name of an option", "empty string");
      (i == 0 ? action.format : action.text) = *argument.text;
      continue;
    }
    TRY(resolver_.resolve(&argument));
    if (!types_.is_string_like(argument.type))
      return argument_type("D_PROTO_ARG", call, i, "string", types_.name(argument.type));
    action.arguments.push_back(TRY(CodeGenerator::string(resolver_, argument)));
  }
  return action;
}

Checked<dif::Action> ActionBuilder::without_arguments(dif::ActionKind kind) {
  dif::Action action;
  action.kind = kind;
  return action;
}

/// exit(), raise() and the like: one number.
Checked<dif::Action> ActionBuilder::of_number(const Expr& call, dif::ActionKind kind, TypeId type) {
  Expr& number = *call.list[0];
  TRY(resolver_.resolve(&number));
  if (!types_.is_integer(number.type)) {
    return argument_type("D_PROTO_ARG", call, 0, types_.name(type), types_.name(number.type));
  }
  dif::Action action;
  action.kind = kind;
  action.arguments.push_back(TRY(CodeGenerator::integer(resolver_, number, type)));
  return action;
}

Checked<dif::Action> ActionBuilder::ftruncate(Expr&) {
  return without_arguments(dif::ActionKind::Ftruncate);
}

Checked<dif::Action> ActionBuilder::stop(Expr&) {
  return without_arguments(dif::ActionKind::Stop);
}

Checked<dif::Action> ActionBuilder::breakpoint(Expr&) {
  return without_arguments(dif::ActionKind::Breakpoint);
}

Checked<dif::Action> ActionBuilder::panic(Expr&) {
  return without_arguments(dif::ActionKind::Panic);
}

Checked<dif::Action> ActionBuilder::exit(Expr& call) {
  return of_number(call, dif::ActionKind::Exit, types_.int32);
}

Checked<dif::Action> ActionBuilder::raise(Expr& call) {
  return of_number(call, dif::ActionKind::Raise, types_.int32);
}

Checked<dif::Action> ActionBuilder::chill(Expr& call) {
  return of_number(call, dif::ActionKind::Chill, types_.int64);
}

Checked<dif::Action> ActionBuilder::speculate(Expr& call) {
  return of_number(call, dif::ActionKind::Speculate, types_.int32);
}

Checked<dif::Action> ActionBuilder::commit(Expr& call) {
  return of_number(call, dif::ActionKind::Commit, types_.int32);
}

Checked<dif::Action> ActionBuilder::discard(Expr& call) {
  return of_number(call, dif::ActionKind::Discard, types_.int32);
}

}  // namespace ringside::d
