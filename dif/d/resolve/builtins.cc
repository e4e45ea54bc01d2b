// In this file: D's own names: built-in variables, regs[] and uregs[], and calls of subroutines,
// actions and aggregating functions. The tables of dif/program list them.
#include <fmt/format.h>

#include "dif/d/resolve/resolve.h"
#include "dif/program/action_kind.h"

namespace ringside::d {

TypeId Resolver::builtin_type(dif::BuiltinType type) const {
  switch (type) {
    case dif::BuiltinType::Void: return TypeId{};
    case dif::BuiltinType::Signed32: return types_.int32;
    case dif::BuiltinType::Signed64: return types_.int64;
    case dif::BuiltinType::Unsigned16: return types_.uint16;
    case dif::BuiltinType::Unsigned32: return types_.uint32;
    case dif::BuiltinType::Unsigned64: return types_.uint64;
    case dif::BuiltinType::Pointer: return types_.void_pointer;
    case dif::BuiltinType::String: return types_.string;
  }
  return TypeId{};
}

Checked<bool> Resolver::resolve_builtin(Expr* e) {
  const std::string& text = *e->text;
  const auto builtin = dif::find_builtin(text);
  if (!builtin || identifiers_.is_hidden(text)) return false;
  Identifier identifier;
  identifier.kind = Identifier::Kind::Builtin;
  identifier.name = text;
  identifier.id = static_cast<std::uint16_t>(builtin->id);
  identifier.type = builtin_type(builtin->type);
  identifier.attributes = identifier_info(text).attributes;
  if (builtin->id == dif::Builtin::Curthread) {
    if (const auto task = types_.graph().find(TypeKind::Struct, "task_struct")) {
      identifier.type = types_.graph().pointer_to(*task);
    }
  } else if (builtin->type == dif::BuiltinType::Pointer) {
    identifier.type = types_.uint64;  // caller and ucaller are numbers
  }
  TRY(stability_.note(identifier.attributes, text, e->at));
  e->identifier = identifiers_.add_builtin(std::move(identifier));
  e->type = e->identifier->type;
  return true;
}

Checked<void> Resolver::resolve_register(Expr* e) {
  e->text = e->a->text;
  TRY(stability_.note(identifier_info(*e->text).attributes, *e->text, e->a->at));
  if (e->list.size() != 1) {
    return complain("D_PROTO_LEN", e->at,
                    fmt::format("{}[ ] prototype mismatch: one index is expected", *e->text));
  }
  const Expr& index = *e->list[0];
  TRY(resolve(e->list[0]));
  if (!types_.is_integer(index.type)) {
    return complain(
        "D_PROTO_ARG", index.at,
        fmt::format("{}[ ] argument #1 is incompatible with prototype: integer expected",
                    *e->text));
  }
  if (index.constant && *index.constant >= environment_.register_indices()) {
    return complain("D_REGS_IDX", index.at,
                    fmt::format("index {} is out of range for {}[ ]",
                                static_cast<std::int64_t>(*index.constant), *e->text));
  }
  e->type = types_.uint64;
  return {};
}

Checked<void> Resolver::check_call_argument(const Expr& call, std::size_t position,
                                            dif::ArgumentKind kind) const {
  const Expr& value = *call.list[position];
  const TypeId type = types_.decay(value.type);
  bool fits = false;
  switch (kind) {
    case dif::ArgumentKind::None: break;
    case dif::ArgumentKind::Integer: fits = types_.is_integer(type); break;
    case dif::ArgumentKind::Pointer:
      fits = types_.is_scalar(type) || (types_.by_reference(type) && !types_.is_float(type));
      break;
    case dif::ArgumentKind::Address: fits = types_.is_scalar(type); break;
    case dif::ArgumentKind::Place: fits = types_.is_pointer(type); break;
    case dif::ArgumentKind::String:
      fits = types_.is_string_like(value.type) ||
             (types_.is_pointer(type) && types_.is_void(types_.referent(type))) ||
             rules_.is_null(value);
      break;
  }
  if (fits) return {};
  return complain("D_PROTO_ARG", value.at,
                  fmt::format("{}( ) argument #{} is incompatible with prototype: {} passed",
                              *call.text, position + 1, types_.name(value.type)));
}

/// The call of an action or aggregating function. It has no value: whoever needs one says so.
Checked<void> Resolver::resolve_action_call(Expr* e) {
  e->identifier = nullptr;
  e->type = TypeId{};
  for (Expr* argument : e->list) {
    const Expr& named = argument->kind == ExprKind::Index ? *argument->a : *argument;
    const bool has_type = named.kind != ExprKind::Aggregation && named.kind != ExprKind::Decimal;
    if (has_type) TRY(resolve_dynamic(argument));
  }
  const auto known = dif::action_prototype(*e->text);
  if (!known) return {};
  const std::size_t passed = e->list.size();
  const bool any_more = known->most == dif::kAny;
  if (passed >= known->least && (any_more || passed <= known->most)) return {};
  const bool more = passed >= known->least;
  const std::string_view bound = known->least == known->most ? "" : more ? "at most " : "at least ";
  return complain(
      "D_PROTO_LEN", e->at,
      fmt::format("{}( ) prototype mismatch: {} arg{} passed, {}{} expected", *e->text, passed,
                  passed == 1 ? "" : "s", bound, more ? known->most : known->least));
}

Checked<void> Resolver::resolve_call(Expr* e) {
  const std::string& text = *e->text;
  if (is_action(text)) return resolve_action_call(e);
  const auto known = dif::find_subroutine(text);
  const Identifier* const other =
      known ? nullptr : identifiers_.find_identifier(Scope::Global, text);
  if (other != nullptr && other->kind == Identifier::Kind::Inline) {
    return complain("D_FUNC_IDENT", e->at, "function designator is not of function type");
  }
  if (!known && (dif::find_builtin(text) || dif::find_builtin_array(text))) {
    return complain("D_FUNC_IDKIND", e->at, fmt::format("identifier {} is not a function", text));
  }
  if (!known) {
    return complain(
        "D_FUNC_UNDEF", e->at,
        fmt::format("undefined function name: {}{}", text, did_you_mean(similar_function(text))));
  }
  TRY(stability_.note_function(text, e->at));
  if (known->status == dif::SubroutineStatus::Missing) {
    return complain("D_UNKNOWN", e->at, fmt::format("{}( ) {}", text, known->reason));
  }
  if (e->list.size() < known->least || e->list.size() > known->most) {
    return complain("D_PROTO_LEN", e->at,
                    fmt::format("{}( ) prototype mismatch: {} arg{} passed, {} expected", text,
                                e->list.size(), e->list.size() == 1 ? "" : "s", known->least));
  }
  for (std::size_t i = 0; i < e->list.size(); ++i) {
    TRY(resolve(e->list[i]));
    TRY(check_call_argument(*e, i, known->arguments[i]));
  }
  e->identifier = identifiers_.subroutine(*known);
  e->type = builtin_type(known->result);
  return {};
}

}  // namespace ringside::d
