// printf() and its kin: a format, its conversions, and an argument of a fitting type for each.
// Conversions: Dynamic Tracing Guide, "Output Formatting".
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/resolve/actions.h"

namespace ringside::d {
namespace {

/// What an argument must be, by conversion, in dtrace's words.
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
    {"sS", false, "char [] or string (or use stringof)"},
    {"aAp", false, "pointer or integer"},
    {"eEfFgG", false, "float, double, or long double"},
    {"k", false, "stack"},
    {"I", false, "in_addr_t or struct in6_addr"},
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

Checked<std::vector<dif::Conversion>> ActionBuilder::format(const Expr& text,
                                                            std::string_view function) {
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

bool ActionBuilder::fits(const Expr& e, const dif::Conversion& conversion) const {
  const bool is_integer = types_.is_integer(e.type);
  const bool wide = conversion.modifiers == "w";
  switch (conversion.kind) {
    case 's':
      if (wide) {
        return types_.is_array(e.type) && types_.is_integer(types_.referent(e.type)) &&
               types_.size(types_.referent(e.type)) == 4;
      }
      [[fallthrough]];
    case 'S':
      return !wide && (types_.is_string(e.type) ||
                       (types_.is_array(e.type) && types_.is_string_like(e.type)));
    case 'a':
    case 'A':
    case 'p': return !wide && (is_integer || types_.is_pointer(types_.decay(e.type)));
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': return !wide && types_.is_float(e.type);
    case 'I':
      return !wide && !types_.is_float(e.type) &&
             (is_integer || (types_.by_reference(e.type) &&
                             (types_.size(e.type) == 4 || types_.size(e.type) == 16)));
    case 'k': return false;
    case 'c': return is_integer;
    default: return !wide && is_integer;
  }
}

Checked<dif::Difo> ActionBuilder::convert(const Expr& call, Expr& argument,
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
    return code_value(argument);
  }
  TRY(resolver_.resolve(&argument));
  if (!fits(argument, conversion)) return refuse(types_.name(argument.type));
  const bool text = conversion.kind == 's' || conversion.kind == 'S';
  if (text && conversion.modifiers != "w") return CodeGenerator::string(resolver_, argument);
  const bool address = types_.is_array(argument.type) && conversion.kind != 'I' && !text;
  if (address) return CodeGenerator::integer(resolver_, argument, types_.uint64);
  return CodeGenerator::value(resolver_, argument);
}

/// The int that a '*' stands for.
Checked<void> ActionBuilder::dynamic_width(dif::Action& action, const Expr& call,
                                           std::size_t position, std::size_t number, char kind) {
  if (position >= call.list.size()) {
    return complain("D_PRINTF_DYN_PROTO", call.at,
                    fmt::format("{}( ) prototype mismatch: conversion #{} (%{}) is missing a "
                                "corresponding \"int\" argument",
                                *call.text, number, kind));
  }
  Expr& width = *call.list[position];
  TRY(resolver_.resolve(&width));
  if (!types_.is_integer(width.type)) {
    return complain("D_PRINTF_DYN_TYPE", width.at,
                    fmt::format("{}( ) argument #{} is incompatible with conversion #{} prototype: "
                                "conversion: %*{}, prototype: int, argument: {}",
                                *call.text, position + 1, number, kind, types_.name(width.type)));
  }
  action.arguments.push_back(TRY(CodeGenerator::integer(resolver_, width, types_.int32)));
  return {};
}

Checked<dif::Action> ActionBuilder::formatted(Expr& call, dif::ActionKind kind) {
  const auto conversions = TRY(format(*call.list[0], *call.text));
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

/// The arguments' types for the consumer: all or, when one cannot be described, none. What has no
/// type in D (a stack) has its form in the record.
void ActionBuilder::describe(dif::Action& action, const Expr& call) {
  for (std::size_t i = 1; i < call.list.size(); ++i) {
    const Expr& argument = *call.list[i];
    const bool has_type = !is_code_call(argument);
    const bool is_address = has_type && types_.is_array(argument.type) &&
                            action.arguments[i - 1].result.kind == dif::ValueKind::Integer;
    const auto shape = shapes_.add(has_type && !is_address ? argument.type : types_.uint64);
    if (!shape) return action.shapes.clear();
    action.shapes.push_back(*shape);
  }
}

Checked<dif::Action> ActionBuilder::printf(Expr& call) {
  return formatted(call, dif::ActionKind::Printf);
}

/// The empty name stands for standard output, and travels as an empty format.
Checked<dif::Action> ActionBuilder::freopen(Expr& call) {
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
      action.kind = dif::ActionKind::Freopen;
      return action;
    }
  }
  return formatted(call, dif::ActionKind::Freopen);
}

Checked<dif::Action> ActionBuilder::system(Expr& call) {
  return formatted(call, dif::ActionKind::System);
}

}  // namespace ringside::d
