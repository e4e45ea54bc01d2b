#include "dif/d/syntax/print_tree.h"

#include <fmt/format.h>

namespace ringside::d {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    switch (c) {
      case '\n': result += "\\n"; break;
      case '\t': result += "\\t"; break;
      case '"': result += "\\\""; break;
      case '\\': result += "\\\\"; break;
      default:
        if (c >= ' ' && c < 0x7f) {
          result += c;
        } else {
          result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
        }
    }
  }
  return result + '"';
}

std::string print_list(const ExprList& list) {
  std::string result;
  for (const Expr* e : list) {
    if (!result.empty()) result += ", ";
    result += print_expression(*e);
  }
  return result;
}

std::string print_spec(const TypeSpec& spec) {
  using Base = TypeSpec::Base;
  std::string words;
  const auto add = [&](bool there, std::string_view word) {
    if (!there) return;
    if (!words.empty()) words += ' ';
    words += word;
  };
  add(spec.is_const, "const");
  add(spec.is_volatile, "volatile");
  add(spec.is_userland, "userland");
  add(spec.is_unsigned, "unsigned");
  add(spec.is_signed, "signed");
  add(spec.is_short, "short");
  for (int i = 0; i < spec.longs; ++i) add(true, "long");
  constexpr std::string_view kWords[] = {"",       "void", "char",   "int",   "float", "double",
                                         "string", "",     "struct", "union", "enum"};
  add(spec.base != Base::None && spec.base != Base::Named,
      kWords[static_cast<std::size_t>(spec.base)]);
  add(spec.name != nullptr, spec.name != nullptr ? *spec.name : std::string_view());
  add(spec.is_definition, "{ ... }");
  return words;
}

bool is_simple(const Expr& e) {
  switch (e.kind) {
    case ExprKind::Unary:
    case ExprKind::Binary:
    case ExprKind::Assign:
    case ExprKind::Conditional:
    case ExprKind::Comma:
    case ExprKind::Cast: return false;
    default: return true;
  }
}

/// As an operand: in parentheses where its own operators could be taken for the outer one's.
std::string operand(const Expr& e) {
  return is_simple(e) ? print_expression(e) : "(" + print_expression(e) + ")";
}

std::string print_unary(const Expr& e) {
  if (e.op == Op::PostInc || e.op == Op::PostDec) {
    return operand(*e.a) + std::string(op_text(e.op));
  }
  return std::string(op_text(e.op)) + operand(*e.a);
}

std::string print_name(const Expr& e) {
  const std::string& text = *e.text;
  switch (e.kind) {
    case ExprKind::Scoped: return (e.scope == Scope::Thread ? "self->" : "this->") + text;
    case ExprKind::Aggregation:
      return "@" + text + (e.list.empty() ? "" : "[" + print_list(e.list) + "]");
    default: return text;
  }
}

}  // namespace

/// A type name: the words, then what is derived from them around no name.
std::string print_type(const Declaration& type) {
  std::string around;
  for (const Derivation& step : type.declarators[0]->derivations) {
    switch (step.kind) {
      case Derivation::Kind::Pointer: around.insert(0, "*"); break;
      case Derivation::Kind::Array:
        if (around.starts_with('*')) around.insert(0, "(").append(")");
        around += "[" + (step.count != nullptr ? print_expression(*step.count) : "") + "]";
        break;
      case Derivation::Kind::Keys: around += "[...]"; break;
      case Derivation::Kind::Function:
        if (around.starts_with('*')) around.insert(0, "(").append(")");
        around += "(...)";
        break;
    }
  }
  return print_spec(*type.spec) + (around.empty() ? "" : " " + around);
}

std::string print_expression(const Expr& e) {
  switch (e.kind) {
    case ExprKind::Integer:
      return fmt::to_string(static_cast<std::int64_t>(e.constant.value_or(0)));
    case ExprKind::String: return quoted(*e.text);
    case ExprKind::Decimal: return *e.text;
    case ExprKind::Name:
    case ExprKind::Scoped:
    case ExprKind::KernelSymbol:
    case ExprKind::Aggregation: return print_name(e);
    case ExprKind::Unary: return print_unary(e);
    case ExprKind::Binary:
      return fmt::format("{} {} {}", operand(*e.a), op_text(e.op), operand(*e.b));
    case ExprKind::Assign:
      return fmt::format("{} {}= {}", print_expression(*e.a), e.compound ? op_text(e.op) : "",
                         e.b->kind == ExprKind::Comma ? operand(*e.b) : print_expression(*e.b));
    case ExprKind::Conditional:
      return fmt::format("{} ? {} : {}", operand(*e.a), operand(*e.b), operand(*e.c));
    case ExprKind::Comma:
      return fmt::format("{}, {}", print_expression(*e.a), print_expression(*e.b));
    case ExprKind::Call: return fmt::format("{}({})", *e.text, print_list(e.list));
    case ExprKind::Index: return fmt::format("{}[{}]", operand(*e.a), print_list(e.list));
    case ExprKind::Member: return fmt::format("{}.{}", operand(*e.a), *e.text);
    case ExprKind::Arrow: return fmt::format("{}->{}", operand(*e.a), *e.text);
    case ExprKind::Cast: return fmt::format("({}){}", print_type(*e.type_name), operand(*e.a));
    case ExprKind::SizeofType: return fmt::format("sizeof ({})", print_type(*e.type_name));
    case ExprKind::SizeofExpr: return fmt::format("sizeof ({})", print_expression(*e.a));
    case ExprKind::Offsetof:
      return fmt::format("offsetof({}, {})", print_type(*e.type_name), *e.text);
    case ExprKind::Stringof: return fmt::format("stringof({})", print_expression(*e.a));
    case ExprKind::Xlate:
      return fmt::format("xlate <{}>({})", print_type(*e.type_name), print_expression(*e.a));
  }
  return {};
}

std::string print_clause(const ClauseNode& clause) {
  std::string result;
  for (const ProbePattern& pattern : clause.probes) {
    if (!result.empty()) result += ",\n";
    result += *pattern.text;
  }
  result += '\n';
  if (clause.predicate != nullptr) {
    result += "/" + print_expression(*clause.predicate) + "/\n";
  }
  result += "{\n";
  for (const Statement* statement : clause.body) {
    result += "\t" + print_expression(*statement->expression) + ";\n";
  }
  return result + "}\n";
}

std::string_view op_text(Op op) {
  switch (op) {
    case Op::Mul: return "*";
    case Op::Div: return "/";
    case Op::Mod: return "%";
    case Op::Add: return "+";
    case Op::Sub: return "-";
    case Op::Shl: return "<<";
    case Op::Shr: return ">>";
    case Op::Lt: return "<";
    case Op::Le: return "<=";
    case Op::Gt: return ">";
    case Op::Ge: return ">=";
    case Op::Eq: return "==";
    case Op::Ne: return "!=";
    case Op::BitAnd: return "&";
    case Op::BitXor: return "^";
    case Op::BitOr: return "|";
    case Op::And: return "&&";
    case Op::Xor: return "^^";
    case Op::Or: return "||";
    case Op::Plus: return "+";
    case Op::Neg: return "-";
    case Op::BitNot: return "~";
    case Op::Not: return "!";
    case Op::Deref: return "*";
    case Op::AddressOf: return "&";
    case Op::PreInc:
    case Op::PostInc: return "++";
    case Op::PreDec:
    case Op::PostDec: return "--";
  }
  return "?";
}

}  // namespace ringside::d
