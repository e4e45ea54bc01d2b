#include "dif/d/actions/format_actions.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::d {
namespace {

/// dtrace's words for the argument that a conversion takes.
struct Prototype {
  std::string_view kinds;
  bool wide;
  std::string_view prototype;
};

constexpr Prototype kPrototypes[] = {
    {"c", true, "wchar_t"},
    {"s", true, "wchar_t []"},
    {"cC", false, "char, short or int"},
    {"diouxX", false, "char, short, int, long, or long long"},
    {"sS", false,
     "char [] or string (copyinstr() reads one of user memory, stringof() one of the kernel's)"},
    {"aAp", false, "pointer or integer"},
    {"eEfFgG", false, "float, double, or long double"},
    {"k", false, "stack"},
    {"I", false, "in_addr_t, struct in6_addr or string"},
    {"P", false, "uint16_t"},
    {"TY", false, "int64_t"},
};

std::string_view prototype(const dif::Conversion& conversion) {
  const bool wide = conversion.modifiers == "w";
  for (const Prototype& row : kPrototypes) {
    if (row.wide == wide && row.kinds.find(conversion.kind) != std::string_view::npos)
      return row.prototype;
  }
  return "a type without the modifier w";
}

bool is_stack_call(const Expr& e) {
  return is_code_call(e) && e.text->ends_with("stack");
}

}  // namespace

Checked<std::vector<dif::Conversion>> conversions_of(const Expr& text, std::string_view function) {
  if (text.kind != ExprKind::String) {
    return complain("D_PRINTF_ARG_FMT", text.at,
                    fmt::format("{}( ) argument #1 is incompatible with prototype: prototype: "
                                "string constant, argument: expression",
                                function));
  }
  if (text.text->empty()) {
    return complain("D_PRINTF_FMT_EMPTY", text.at,
                    fmt::format("{}( ) format string is empty", function));
  }
  auto parsed = dif::parse_format(*text.text);
  if (!parsed) return complain("D_SYNTAX", text.at, parsed.error().message);
  return std::move(*parsed);
}

bool FormatActions::fits(const Expr& e, const dif::Conversion& conversion) const {
  const bool is_integer = tools_.types.is_integer(e.type);
  const bool wide = conversion.modifiers == "w";
  switch (conversion.kind) {
    case 's':
      if (wide) {
        return tools_.types.is_array(e.type) &&
               tools_.types.is_integer(tools_.types.referent(e.type)) &&
               tools_.types.size(tools_.types.referent(e.type)) == 4;
      }
      [[fallthrough]];
    case 'S':
      return !wide && (tools_.types.is_string(e.type) ||
                       (tools_.types.is_array(e.type) && tools_.types.is_string_like(e.type)));
    case 'a':
    case 'A':
    case 'p': return !wide && (is_integer || tools_.types.is_pointer(tools_.types.decay(e.type)));
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': return !wide && tools_.types.is_float(e.type);
    case 'I':
      return !wide && !tools_.types.is_float(e.type) &&
             (is_integer || tools_.types.is_string(e.type) ||
              (tools_.types.by_reference(e.type) &&
               (tools_.types.size(e.type) == 4 || tools_.types.size(e.type) == 16)));
    case 'k': return false;
    case 'c': return is_integer;
    default: return !wide && is_integer;
  }
}

Checked<dif::Difo> FormatActions::convert(const Expr& call, Expr& argument,
                                          const dif::Conversion& conversion, std::size_t position,
                                          std::size_t number) {
  const auto refuse = [&](std::string_view passed) {
    return complain("D_PRINTF_ARG_TYPE", argument.at,
                    fmt::format("{}( ) argument #{} is incompatible with conversion #{} prototype: "
                                "conversion: %{}{}, prototype: {}, argument: {}",
                                *call.text, position + 1, number, conversion.modifiers,
                                conversion.kind, prototype(conversion), passed));
  };
  if (is_code_call(argument)) {
    const bool wanted = is_stack_call(argument) ? conversion.kind == 'k'
                                                : conversion.kind == 'a' || conversion.kind == 'A';
    if (!wanted) return refuse(is_stack_call(argument) ? "stack" : "symaddr");
    return code_.value(argument);
  }
  TRY(tools_.resolver.resolve(&argument));
  if (!fits(argument, conversion)) return refuse(tools_.types.name(argument.type));
  const bool text = conversion.kind == 's' || conversion.kind == 'S' ||
                    (conversion.kind == 'I' && tools_.types.is_string(argument.type));
  if (text && conversion.modifiers != "w")
    return CodeGenerator::generate_string(tools_.resolver, argument);
  const bool address = tools_.types.is_array(argument.type) && conversion.kind != 'I' && !text;
  if (address)
    return CodeGenerator::generate_integer(tools_.resolver, argument, tools_.types.uint64);
  return CodeGenerator::generate_value(tools_.resolver, argument);
}

/// The int that a '*' stands for.
Checked<void> FormatActions::dynamic_width(dif::Action& action, const Expr& call,
                                           std::size_t position, std::size_t number, char kind) {
  if (position >= call.list.size()) {
    return complain("D_PRINTF_DYN_PROTO", call.at,
                    fmt::format("{}( ) prototype mismatch: conversion #{} (%{}) is missing a "
                                "corresponding \"int\" argument",
                                *call.text, number, kind));
  }
  Expr& width = *call.list[position];
  TRY(tools_.resolver.resolve(&width));
  if (!tools_.types.is_integer(width.type)) {
    return complain(
        "D_PRINTF_DYN_TYPE", width.at,
        fmt::format("{}( ) argument #{} is incompatible with conversion #{} prototype: "
                    "conversion: %*{}, prototype: int, argument: {}",
                    *call.text, position + 1, number, kind, tools_.types.name(width.type)));
  }
  action.arguments.push_back(
      TRY(CodeGenerator::generate_integer(tools_.resolver, width, tools_.types.int32)));
  return {};
}

Checked<dif::Action> FormatActions::formatted(Expr& call, dif::ActionKind kind) {
  const auto conversions = TRY(conversions_of(*call.list[0], *call.text));
  dif::Action action;
  action.kind = kind;
  action.format = *call.list[0]->text;
  std::size_t next = 1, number = 0;
  for (const dif::Conversion& conversion : conversions) {
    if (conversion.kind == 0) continue;
    ++number;
    if (conversion.takes_aggregation) {
      return complain("D_PRINTF_AGG_CONV", call.at,
                      fmt::format("{}( ) conversion #{} (%@{}) requires an aggregation: it is only "
                                  "for printa( )",
                                  *call.text, number, conversion.kind));
    }
    const int stars = conversion.star_width + conversion.star_precision;
    for (int i = 0; i < stars; ++i) {
      TRY(dynamic_width(action, call, next++, number, conversion.kind));
    }
    if (next >= call.list.size()) {
      return complain("D_PRINTF_ARG_PROTO", call.at,
                      fmt::format("{}( ) prototype mismatch: conversion #{} (%{}) is missing a "
                                  "corresponding value argument",
                                  *call.text, number, conversion.kind));
    }
    Expr& argument = *call.list[next];
    action.arguments.push_back(TRY(convert(call, argument, conversion, next, number)));
    ++next;
  }
  if (next < call.list.size()) {
    return complain("D_PRINTF_ARG_EXTRA", call.list[next]->at,
                    fmt::format("{}( ) prototype mismatch: only {} arguments required by this "
                                "format string",
                                *call.text, next));
  }
  describe(action, call);
  return action;
}

/// The arguments' types for the consumer: all or, when one cannot be described, none. An argument
/// without a type in D (a stack) has its form in the record.
void FormatActions::describe(dif::Action& action, const Expr& call) {
  for (std::size_t i = 1; i < call.list.size(); ++i) {
    const Expr& argument = *call.list[i];
    const bool has_type = !is_code_call(argument);
    const bool is_address = has_type && tools_.types.is_array(argument.type) &&
                            action.arguments[i - 1].result.kind == dif::ValueKind::Integer;
    const auto shape = has_type && !is_address ? tools_.shape_of(argument)
                                               : tools_.shapes.add(tools_.types.uint64);
    if (!shape) return action.shapes.clear();
    action.shapes.push_back(*shape);
  }
}

/// The empty name stands for standard output, and travels as an empty format.
Checked<dif::Action> FormatActions::freopen(Expr& call, dif::ActionKind kind) {
  const Expr* name = call.list[0];
  if (name->kind == ExprKind::String) {
    if (*name->text == ".") {
      return complain("D_FREOPEN_INVALID", name->at,
                      "freopen( ) argument #1 cannot be \".\": give a file's name, or \"\" for "
                      "standard output");
    }
    if (name->text->empty()) {
      if (call.list.size() > 1) return argument_count("D_PRINTF_ARG_EXTRA", call, "1");
      dif::Action action;
      action.kind = kind;
      return action;
    }
  }
  return formatted(call, kind);
}

}  // namespace ringside::d
