#include "dif/d/actions.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::d {

const ActionBuilder::Row ActionBuilder::kRows[] = {
    {"trace", &ActionBuilder::trace},
    {"printf", &ActionBuilder::printf},
    {"printa", &ActionBuilder::printa},
    {"tracemem", &ActionBuilder::tracemem},
    {"exit", &ActionBuilder::exit},
    {"clear", &ActionBuilder::clear},
    {"trunc", &ActionBuilder::trunc},
    {"normalize", &ActionBuilder::normalize},
    {"denormalize", &ActionBuilder::denormalize},
    {"setopt", &ActionBuilder::setopt},
    {"print", nullptr},
    {"stack", nullptr},
    {"ustack", nullptr},
    {"jstack", nullptr},
    {"sym", nullptr},
    {"mod", nullptr},
    {"func", nullptr},
    {"usym", nullptr},
    {"umod", nullptr},
    {"uaddr", nullptr},
    {"ufunc", nullptr},
    {"ftruncate", nullptr},
    {"freopen", nullptr},
    {"system", nullptr},
    {"stop", nullptr},
    {"raise", nullptr},
    {"breakpoint", nullptr},
    {"panic", nullptr},
    {"chill", nullptr},
    {"speculate", nullptr},
    {"commit", nullptr},
    {"discard", nullptr},
};

tl::unexpected<Diagnostic> argument_count(std::string_view tag, const Expr& call,
                                          std::string_view expected) {
  return complain(tag, call.at,
                  fmt::format("{}( ) prototype mismatch: {} arg{} passed, {} expected", *call.text,
                              call.list.size(), call.list.size() == 1 ? "" : "s", expected));
}

Checked<dif::Action> ActionBuilder::build(Expr& e) {
  if (e.kind == ExprKind::Assign && e.a->kind == ExprKind::Aggregation) return aggregate(e);
  if (e.kind == ExprKind::Aggregation) {
    return complain(
        "D_AGG_NULL", e.at,
        fmt::format("expression @{} must be assigned an aggregating function", *e.text));
  }
  if (e.kind != ExprKind::Call) return effect(e);
  for (const Row& row : kRows) {
    if (row.name != *e.text) continue;
    if (row.handler != nullptr) return (this->*row.handler)(e);
    return complain("D_UNKNOWN", e.at, fmt::format("{}( ) is not supported yet", row.name));
  }
  return effect(e);
}

Checked<dif::Action> ActionBuilder::effect(Expr& e) {
  TRY(resolver_.resolve(&e));
  dif::Action action;
  action.kind = dif::ActionKind::Evaluate;
  action.arguments.push_back(TRY(CodeGenerator::effect(resolver_, e)));
  return action;
}

Checked<dif::Action> ActionBuilder::trace(Expr& call) {
  if (call.list.size() != 1) return argument_count("D_PROTO_LEN", call, "1");
  Expr& value = *call.list[0];
  if (value.kind == ExprKind::Aggregation) {
    return complain("D_TRACE_AGG", call.at, "trace( ) may not be applied to an aggregation");
  }
  TRY(resolver_.resolve(&value));
  if (types_.is_void(value.type)) {
    return complain("D_TRACE_VOID", call.at, "trace( ) may not be applied to a void expression");
  }
  dif::Action action;
  action.kind = dif::ActionKind::Trace;
  action.arguments.push_back(TRY(CodeGenerator::value(resolver_, value)));
  return action;
}

Checked<std::vector<dif::Conversion>> ActionBuilder::format(const Expr& text,
                                                            std::string_view function) {
  if (text.kind != ExprKind::String) {
    return complain(
        "D_PRINTF_ARG_FMT", text.at,
        fmt::format("{}( ) argument #1 is incompatible with prototype: a string constant "
                    "is needed",
                    function));
  }
  if (text.text->empty()) {
    return complain("D_PRINTF_FMT_EMPTY", text.at,
                    fmt::format("{}( ) format string is empty", function));
  }
  auto parsed = dif::parse_format(*text.text);
  if (!parsed) return complain("D_PRINTF_DYN_TYPE", text.at, parsed.error().message);
  return std::move(*parsed);
}

Checked<void> ActionBuilder::convert(dif::Action& action, Expr& argument,
                                     const dif::Conversion& conversion, std::size_t number) {
  TRY(resolver_.resolve(&argument));
  constexpr std::string_view kIntegers = "cCdiouxXYTpaAP";
  const TypeId type = types_.decay(argument.type);
  const bool wide = conversion.modifiers == "w";
  if ((conversion.kind == 's' || conversion.kind == 'S') && !wide) {
    if (types_.is_string_like(argument.type)) {
      action.arguments.push_back(TRY(CodeGenerator::string(resolver_, argument)));
      return {};
    }
  } else if (kIntegers.find(conversion.kind) != std::string_view::npos && !wide) {
    if (types_.is_scalar(type) && types_.is_scalar(argument.type)) {
      action.arguments.push_back(TRY(CodeGenerator::value(resolver_, argument)));
      return {};
    }
    if (types_.is_pointer(type)) {  // an array: its address
      action.arguments.push_back(TRY(CodeGenerator::integer(resolver_, argument, types_.uint64)));
      return {};
    }
  } else {
    return complain("D_UNKNOWN", argument.at,
                    fmt::format("conversion %{}{} is not supported yet", conversion.modifiers,
                                conversion.kind));
  }
  return complain(
      "D_PRINTF_ARG_TYPE", argument.at,
      fmt::format("printf( ) argument #{} is incompatible with conversion #{} (%{}{}): {}",
                  action.arguments.size() + 2, number, conversion.modifiers, conversion.kind,
                  types_.name(argument.type)));
}

Checked<dif::Action> ActionBuilder::printf(Expr& call) {
  if (call.list.empty()) return argument_count("D_PRINTF_DYN_PROTO", call, "1 or more");
  const auto conversions = TRY(format(*call.list[0], "printf"));
  dif::Action action;
  action.kind = dif::ActionKind::Printf;
  action.format = *call.list[0]->text;
  std::size_t next = 1, number = 0;
  dif::Conversion star;
  star.kind = 'd';
  for (const dif::Conversion& conversion : conversions) {
    if (conversion.kind == 0) continue;
    ++number;
    if (conversion.takes_aggregation) {
      return complain("D_PRINTF_AGG_CONV", call.at,
                      fmt::format("printf( ) conversion #{} (%@{}) is only for printa( )", number,
                                  conversion.kind));
    }
    const std::size_t needed = 1U + conversion.star_width + conversion.star_precision;
    if (call.list.size() < next + needed) {
      return complain("D_PRINTF_ARG_PROTO", call.at,
                      fmt::format("printf( ) prototype mismatch: conversion #{} (%{}) is missing a "
                                  "corresponding value argument",
                                  number, conversion.kind));
    }
    for (std::size_t i = 1; i < needed; ++i) TRY(convert(action, *call.list[next++], star, number));
    TRY(convert(action, *call.list[next++], conversion, number));
  }
  if (next < call.list.size()) {
    return complain("D_PRINTF_ARG_EXTRA", call.list[next]->at,
                    fmt::format("printf( ) prototype mismatch: only {} arguments required by this "
                                "format string",
                                next - 1));
  }
  return action;
}

Checked<dif::Action> ActionBuilder::tracemem(Expr& call) {
  if (call.list.size() != 2 && call.list.size() != 3) {
    return argument_count("D_TRACEMEM_ARGS", call, "2 or 3");
  }
  if (call.list.size() == 3) {
    return complain("D_UNKNOWN", call.list[2]->at,
                    "tracemem( ) with a dynamic size is not supported yet");
  }
  Expr& address = *call.list[0];
  TRY(resolver_.resolve(&address));
  const TypeId type = types_.decay(address.type);
  if (!types_.is_scalar(type)) {
    return complain(
        "D_TRACEMEM_ADDR", address.at,
        "tracemem( ) argument #1 is incompatible with prototype: a pointer or integer is needed");
  }
  const auto size = resolver_.constant(call.list[1], "tracemem( ) size");
  if (!size || *size <= 0 || *size > UINT32_MAX) {
    return complain(
        "D_TRACEMEM_SIZE", call.list[1]->at,
        "tracemem( ) argument #2 must be a non-zero positive integral constant expression");
  }
  dif::Action action;
  action.kind = dif::ActionKind::Tracemem;
  action.arguments.push_back(TRY(CodeGenerator::integer(resolver_, address, types_.uint64)));
  action.argument = static_cast<std::uint64_t>(*size);
  action.has_argument = true;
  return action;
}

Checked<dif::Action> ActionBuilder::exit(Expr& call) {
  if (call.list.size() != 1) return argument_count("D_PROTO_LEN", call, "1");
  Expr& status = *call.list[0];
  TRY(resolver_.resolve(&status));
  if (!types_.is_integer(status.type)) {
    return complain(
        "D_PROTO_ARG", status.at,
        fmt::format("exit( ) argument #1 is incompatible with prototype: int, argument: {}",
                    types_.name(status.type)));
  }
  dif::Action action;
  action.kind = dif::ActionKind::Exit;
  action.arguments.push_back(TRY(CodeGenerator::integer(resolver_, status, types_.int32)));
  return action;
}

Checked<dif::Action> ActionBuilder::setopt(Expr& call) {
  if (call.list.empty() || call.list.size() > 2)
    return argument_count("D_PROTO_LEN", call, "1 or 2");
  for (const Expr* argument : call.list) {
    if (argument->kind == ExprKind::String) continue;
    return complain("D_PROTO_ARG", argument->at, "setopt( ) arguments must be string constants");
  }
  dif::Action action;
  action.kind = dif::ActionKind::Setopt;
  action.format = *call.list[0]->text;
  if (call.list.size() == 2) action.text = *call.list[1]->text;
  return action;
}

}  // namespace ringside::d
