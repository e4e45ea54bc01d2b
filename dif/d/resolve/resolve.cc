// Expressions, in this file: the choice, constants and conditions, calls, members, casts, sizes.
#include "dif/d/resolve/resolve.h"

#include <fmt/format.h>

#include "dif/d/syntax/parse.h"
#include "dif/program/action_kind.h"

namespace ringside::d {

Resolver::Resolver(Environment& environment, const CompileOptions& options, Arena& arena)
    : environment_(environment),
      options_(options),
      arena_(arena),
      types_(environment.types(), options.string_size),
      symbols_(options.version),
      stability_(symbols_, options.attribute_minimum),
      declared_(types_, symbols_, *this),
      translators_(types_),
      providers_(types_, declared_, translators_),
      pragmas_(symbols_, declared_, providers_),
      probes_(environment, types_),
      rules_(types_),
      copier_(arena),
      namer_(types_, environment) {}

Checked<void> Resolver::resolve(Expr* e, std::string_view dynamic_tag) {
  TRY(resolve_dynamic(e));
  if (e->translation == nullptr) return {};
  if (!e->translation->is_pointer) return materialize(e);
  return complain(dynamic_tag, e->at,
                  fmt::format("expression cannot evaluate to result of type {}: only its members "
                              "have values",
                              types_.name(e->type)));
}

Checked<void> Resolver::resolve_dynamic(Expr* e) {
  // The parser bounds what is written; inlines of inlines can still nest beyond the stack.
  constexpr int kMostDepth = 3 * kMaxDepth;
  if (depth_ >= kMostDepth) return complain("D_UNKNOWN", e->at, "inlines nest too deeply");
  ++depth_;
  // A node may be resolved twice (x++ types its operand first); names must not be declared anew.
  e->constant = e->kind == ExprKind::Integer ? e->constant : std::nullopt;
  e->late = e->is_own;
  auto result = dispatch(e);
  --depth_;
  return result;
}

Checked<void> Resolver::dispatch(Expr* e) {
  switch (e->kind) {
    case ExprKind::Integer: return {};
    case ExprKind::String: e->type = types_.string; return {};
    case ExprKind::Name: return name(e);
    case ExprKind::Scoped: return scoped(e);
    case ExprKind::KernelSymbol: return kernel_symbol(e, false);
    case ExprKind::Aggregation: return aggregation(e);
    case ExprKind::Unary: return unary(e);
    case ExprKind::Binary: return binary(e);
    case ExprKind::Assign: return assign(e);
    case ExprKind::Conditional: return conditional(e);
    case ExprKind::Comma: return comma(e);
    case ExprKind::Call: return call(e);
    case ExprKind::Index: return index(e);
    case ExprKind::Member:
    case ExprKind::Arrow: return member(e);
    case ExprKind::Cast: return cast(e);
    case ExprKind::SizeofType:
    case ExprKind::SizeofExpr: return size_of(e);
    case ExprKind::Offsetof: return offset_of(e);
    case ExprKind::Stringof: return string_of(e);
    case ExprKind::Xlate: return translate(e);
  }
  return {};
}

Checked<void> Resolver::comma(Expr* e) {
  for (const Expr* part : {e->a, e->b}) {
    if (part->kind == ExprKind::Call && is_action(*part->text)) {
      return complain("D_OP_ACT", e->at, "operator , operands cannot be actions");
    }
  }
  TRY(resolve(e->a));
  TRY(resolve(e->b));
  e->type = e->b->type;
  return {};
}

Checked<std::int64_t> Resolver::constant(Expr* e, std::string_view what, std::string_view tag) {
  TRY(resolve(e));
  if (!e->constant || !types_.is_integer(e->type)) {
    return complain(tag, e->at, fmt::format("{} must be an integer constant", what));
  }
  return static_cast<std::int64_t>(*known(*e));
}

std::optional<std::uint64_t> Resolver::known(const Expr& e) {
  if (e.constant) namer_.fix(e);
  return e.constant;
}

Checked<void> Resolver::condition(Expr* e) {
  TRY(resolve(e));
  if (types_.is_scalar(e->type)) return {};
  return complain("D_OP_SCALAR", e->at,
                  fmt::format("condition must be of scalar type, not {}", types_.name(e->type)));
}

Checked<dif::ValueType> Resolver::value_type(const Expr& e) const {
  if (const auto found = types_.value_type(e.type)) return *found;
  return complain("D_TYPE_ERR", e.at,
                  fmt::format("a value of type {} cannot be used here", types_.name(e.type)));
}

Checked<void> Resolver::argument(const Expr& call, std::size_t position, dif::ArgumentKind kind) {
  const Expr& value = *call.list[position];
  const TypeId type = types_.decay(value.type);
  bool fits = false;
  switch (kind) {
    case dif::ArgumentKind::None: break;
    case dif::ArgumentKind::Integer: fits = types_.is_integer(type); break;
    case dif::ArgumentKind::Pointer:
      fits = types_.is_scalar(type) || (types_.by_reference(type) && !types_.is_float(type));
      break;
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
Checked<void> Resolver::action(Expr* e) {
  e->symbol = nullptr;
  e->type = TypeId{};
  for (Expr* argument : e->list) {
    const Expr& named = argument->kind == ExprKind::Index ? *argument->a : *argument;
    if (named.kind != ExprKind::Aggregation) TRY(resolve_dynamic(argument));
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

Checked<void> Resolver::aggregation(Expr* e) {
  e->type = TypeId{};  // has no value
  if (aggregations_.contains(*e->text)) return {};
  return complain("D_IDENT_UNDEF", e->at,
                  fmt::format("failed to resolve @{}: Unknown variable name", *e->text));
}

Checked<void> Resolver::call(Expr* e) {
  const std::string& text = *e->text;
  if (is_action(text)) return action(e);
  const auto known = dif::find_subroutine(text);
  const Symbol* const other = known ? nullptr : symbols_.find(Scope::Global, text);
  if (other != nullptr && other->kind == Symbol::Kind::Inline) {
    return complain("D_FUNC_IDENT", e->at, "function designator is not of function type");
  }
  if (!known && (dif::find_builtin(text) || dif::find_builtin_array(text))) {
    return complain("D_FUNC_IDKIND", e->at, fmt::format("identifier {} is not a function", text));
  }
  if (!known) {
    return complain("D_FUNC_UNDEF", e->at, fmt::format("undefined function name: {}", text));
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
    TRY(argument(*e, i, known->arguments[i]));
  }
  e->symbol = symbols_.subroutine(*known);
  e->type = builtin_type(known->result);
  return {};
}

/// The structure or union whose member e.x or e->x is.
Checked<TypeId> Resolver::structure_of(const Expr& e) {
  const bool arrow = e.kind == ExprKind::Arrow;
  TypeId type = e.a->type;
  if (arrow) {
    const TypeId pointer = types_.decay(type);
    if (!types_.is_pointer(pointer)) {
      return complain("D_OP_PTR", e.at, "operator -> must be applied to a pointer");
    }
    type = types_.referent(pointer);
  }
  const std::string_view op = arrow ? "->" : ".";
  if (!types_.is_struct(type)) {
    return complain(
        "D_OP_SOU", e.at,
        fmt::format("operator {} cannot be applied to type \"{}\"; must be applied to a "
                    "{}struct or union",
                    op, types_.name(e.a->type), arrow ? "pointer to a " : ""));
  }
  type = declared_.completed(type);
  if (types_.kind(type) != TypeKind::Forward) return type;
  return complain("D_OP_INCOMPLETE", e.at,
                  fmt::format("operator {} cannot be applied to a forward declaration: no {} "
                              "definition is available",
                              op, types_.name(type)));
}

Checked<void> Resolver::member(Expr* e) {
  TRY(resolve_dynamic(e->a));
  const bool arrow = e->kind == ExprKind::Arrow;
  if (e->a->translation != nullptr && e->a->translation->is_pointer == arrow) {
    return translated_member(e);
  }
  const TypeId type = TRY(structure_of(*e));
  const auto found = types_.graph().find_member(type, *e->text);
  if (!found) {
    return complain("D_TYPE_MEMBER", e->at,
                    fmt::format("{} is not a member of {}", *e->text, types_.name(type)));
  }
  e->member = *found;
  e->container = type;
  e->type = found->type;
  e->is_lvalue = arrow || e->a->is_lvalue;
  const std::string_view tag = types_.at(type).name;
  const bool own = tag.empty() || declared_.is_own_tag(types_.kind(type), tag);
  return own ? Checked<void>{} : stability_.note(kPrivate, types_.name(type), e->at);
}

Checked<void> Resolver::cast(Expr* e) {
  if (e->type_name == nullptr) return fold(types_, e);  // made by an inline
  if (e->type_name->spec->repeats) {
    return complain("D_DECL_COMBO", e->at, "invalid type combination: a word is given twice");
  }
  const TypeId to = TRY(declared_.type_name(*e->type_name));
  if (e->a->kind == ExprKind::KernelSymbol) {
    TRY(cast_symbol(e->a, to));
  } else {
    TRY(resolve(e->a));
  }
  const TypeId from = types_.decay(e->a->type);
  e->type = to;
  const bool array = types_.is_array(e->a->type) && !types_.is_pointer(to);
  const bool scalars =
      types_.is_scalar(to) && types_.is_scalar(from) && !types_.is_string(from) && !array;
  const bool to_string =
      types_.is_string(to) && (types_.is_string_like(e->a->type) || types_.is_scalar(from));
  const bool same = types_.by_reference(to) && types_.same(to, e->a->type);
  if (!scalars && !to_string && !same && !types_.is_void(to)) {
    return complain("D_CAST_INVAL", e->at,
                    fmt::format("invalid cast expression: \"{}\" to \"{}\"",
                                types_.name(e->a->type), types_.name(to)));
  }
  return fold(types_, e);
}

Checked<void> Resolver::size_of(Expr* e) {
  TypeId type;
  if (e->kind == ExprKind::SizeofType) {
    type = TRY(declared_.type_name(*e->type_name));
  } else {
    TRY(resolve_dynamic(e->a));
    type = e->a->type;
    const bool access = e->a->kind == ExprKind::Member || e->a->kind == ExprKind::Arrow;
    if (access && e->a->member.bit_width != 0) {
      return complain("D_SIZEOF_BITFIELD", e->at, "cannot apply sizeof to a bit-field");
    }
  }
  e->container = type;
  e->late = namer_.is_late_size(*e);
  std::uint64_t size = types_.is_function(type) ? 0
                       : e->late                ? types_.measure(type)
                                                : types_.size(type);
  if (e->kind == ExprKind::SizeofExpr && e->a->kind == ExprKind::String)
    size = e->a->text->size() + 1;
  if (size == 0) {
    return complain("D_SIZEOF_TYPE", e->at,
                    fmt::format("cannot apply sizeof to an operand of type {}", types_.name(type)));
  }
  e->type = types_.uint64;
  e->constant = size;
  return {};
}

Checked<void> Resolver::offset_of(Expr* e) {
  const TypeId type = TRY(declared_.type_name(*e->type_name));
  if (!types_.is_struct(type) || types_.measure(type) == 0) {
    return complain("D_OFFSETOF_TYPE", e->at, "offsetof operand must be a struct or union type");
  }
  e->container = type;
  e->late = namer_.is_kernel_type(types_.graph().resolve(type));
  const auto found = types_.graph().find_member(type, *e->text);
  if (!found) {
    return complain("D_UNKNOWN", e->at,
                    fmt::format("failed to determine offset of {}: {} has no such member", *e->text,
                                types_.name(type)));
  }
  if (found->bit_width != 0) {
    return complain("D_OFFSETOF_BITFIELD", e->at, "cannot take the offset of a bit-field");
  }
  e->type = types_.uint64;
  e->constant = found->bit_offset / 8;
  return {};
}

Checked<void> Resolver::string_of(Expr* e) {
  TRY(resolve(e->a));
  const TypeId from = types_.decay(e->a->type);
  if (!types_.is_scalar(from) && !types_.is_string(from)) {
    return complain(
        "D_STRINGOF_TYPE", e->at,
        fmt::format("cannot apply stringof to a value of type {}", types_.name(e->a->type)));
  }
  e->type = types_.string;
  return {};
}

}  // namespace ringside::d
