// In this file: how each kind of expression is typed; constants and conditions, members, casts,
// sizes, operators that only read.
#include "dif/d/resolve/resolve.h"

#include <fmt/format.h>

#include <utility>

#include "dif/d/syntax/parse.h"

namespace ringside::d {

namespace {

/// Whether operands of the operator are only compared, or asked whether they are 0.
bool is_compared(Op op) {
  return op == Op::Eq || op == Op::Ne || op == Op::And || op == Op::Xor || op == Op::Or ||
         op == Op::Not;
}

}  // namespace

Resolver::Resolver(Environment& environment, const CompileOptions& options, AstArena& arena)
    : options_(options),
      environment_(environment),
      arena_(arena),
      types_(environment.types(), options.string_size),
      identifiers_(options.version),
      stability_(identifiers_, options.attribute_minimum),
      type_resolver_(types_, identifiers_, *this, environment),
      rules_(types_),
      copier_(arena),
      namer_(types_, environment),
      translators_(types_) {}

void Resolver::enter_clause(std::vector<dif::ProbeDescription> probes) {
  probes_ = std::move(probes);
  signature_.reset();
  first_assigned_.clear();
}

Checked<void> Resolver::resolve(Expr* e, std::string_view dynamic_tag) {
  TRY(resolve_dynamic(e));
  return settle_translation(e, dynamic_tag);
}

Checked<void> Resolver::resolve_compared(Expr* e, std::string_view dynamic_tag) {
  TRY(resolve_dynamic(e));
  return settle_compared(e, dynamic_tag);
}

Checked<void> Resolver::resolve_dynamic(Expr* e) {
  // The parser bounds what is written; inlines of inlines can still nest beyond the stack.
  constexpr int kMostDepth = 3 * kMaxDepth;
  if (depth_ >= kMostDepth) return complain("D_UNKNOWN", e->at, "inlines nest too deeply");
  ++depth_;
  // A node may be resolved twice (x++ types its operand first); names must not be declared anew.
  e->constant = e->kind == ExprKind::Integer ? e->constant : std::nullopt;
  e->late = e->is_own;
  auto result = resolve_kind(e);
  --depth_;
  return result;
}

Checked<void> Resolver::resolve_kind(Expr* e) {
  switch (e->kind) {
    case ExprKind::Integer: return {};
    case ExprKind::String: e->type = types_.string; return {};
    case ExprKind::Decimal:
      return complain("D_SYNTAX", e->at, "floating-point constants are not permitted");
    case ExprKind::Name: return resolve_name(e);
    case ExprKind::Scoped: return resolve_scoped(e);
    case ExprKind::KernelSymbol: return resolve_kernel_symbol(e);
    case ExprKind::Aggregation: return resolve_aggregation(e);
    case ExprKind::Unary: return resolve_unary(e);
    case ExprKind::Binary: return resolve_binary(e);
    case ExprKind::Assign: return resolve_assignment(e);
    case ExprKind::Conditional: return resolve_conditional(e);
    case ExprKind::Comma: return resolve_comma(e);
    case ExprKind::Call: return resolve_call(e);
    case ExprKind::Index: return resolve_index(e);
    case ExprKind::Member:
    case ExprKind::Arrow: return resolve_member(e);
    case ExprKind::Cast: return resolve_cast(e);
    case ExprKind::SizeofType:
    case ExprKind::SizeofExpr: return resolve_sizeof(e);
    case ExprKind::Offsetof: return resolve_offsetof(e);
    case ExprKind::Stringof: return resolve_stringof(e);
    case ExprKind::Xlate: return resolve_xlate(e);
  }
  return {};
}

Checked<void> Resolver::resolve_kernel_symbol(Expr* e) {
  const Identifier* const other = find_stand_in(*e);
  if (other == nullptr || other->is_associative) return resolve_kernel_variable(e);
  return expand_inline(e, *other);
}

Checked<void> Resolver::resolve_comma(Expr* e) {
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

Checked<std::int64_t> Resolver::resolve_constant(Expr* e, std::string_view what,
                                                 std::string_view tag) {
  TRY(resolve(e));
  if (!e->constant || !types_.is_integer(e->type)) {
    return complain(tag, e->at, fmt::format("{} must be an integer constant", what));
  }
  return static_cast<std::int64_t>(*known_value(*e));
}

std::optional<std::uint64_t> Resolver::known_value(const Expr& e) {
  if (e.constant) namer_.fix_value(e);
  return e.constant;
}

Checked<void> Resolver::resolve_condition(Expr* e) {
  TRY(resolve_compared(e, "D_CG_DYN"));
  if (types_.is_scalar(e->type)) return {};
  return complain("D_OP_SCALAR", e->at,
                  fmt::format("condition must be of scalar type, not {}", types_.name(e->type)));
}

Checked<const Identifier*> Resolver::find_hidden_local(const std::string& name) {
  if (const Identifier* known = identifiers_.find_identifier(Scope::Clause, name)) return known;
  Identifier* made = TRY(identifiers_.add_variable(Scope::Clause, name, {}));
  made->type = types_.int64;
  return made;
}

Checked<dif::ValueType> Resolver::value_type(const Expr& e) const {
  if (const auto found = types_.value_type(e.type)) return *found;
  return complain("D_TYPE_ERR", e.at,
                  fmt::format("a value of type {} cannot be used here", types_.name(e.type)));
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
  // A structure of a program's is not the kernel's of that name.
  if (!types_.is_userland(type)) type = type_resolver_.completed(type);
  if (types_.kind(type) != TypeKind::Forward) return type;
  return complain("D_OP_INCOMPLETE", e.at,
                  fmt::format("operator {} cannot be applied to a forward declaration: no {} "
                              "definition is available",
                              op, types_.name(type)));
}

Checked<void> Resolver::resolve_member(Expr* e) {
  TRY(resolve_dynamic(e->a));
  if (Resolver::is_translated_member(*e)) return resolve_translated_member(e);
  const TypeId type = TRY(structure_of(*e));
  const auto found = types_.graph().find_member(type, *e->text);
  if (!found) {
    return complain("D_TYPE_MEMBER", e->at,
                    fmt::format("{} is not a member of {}{}", *e->text, types_.name(type),
                                types_.suggest_member(type, *e->text)));
  }
  e->member = *found;
  e->container = types_.graph().without_userland(type);
  e->type = types_.is_userland(type) ? types_.userland(found->type) : found->type;
  e->is_lvalue = e->kind == ExprKind::Arrow || e->a->is_lvalue;
  const std::string_view tag = types_.at(type).name;
  const bool own = tag.empty() || type_resolver_.is_own_tag(types_.kind(type), tag);
  return own ? Checked<void>{} : stability_.note(kPrivate, types_.name(type), e->at);
}

Checked<void> Resolver::resolve_cast(Expr* e) {
  if (e->type_name == nullptr) return fold(types_, e);  // made by an inline
  if (e->type_name->spec->repeats || e->type_name->spec->longs > 2) {
    return complain("D_DECL_COMBO", e->at, "invalid type combination: a word is given twice");
  }
  const TypeId to = TRY(type_resolver_.resolve_type_name(*e->type_name));
  const bool is_member = e->a->kind == ExprKind::Member || e->a->kind == ExprKind::Arrow ||
                         types_.is_string(e->type);  // which it was when it was resolved before
  if (e->a->kind == ExprKind::KernelSymbol && find_stand_in(*e->a) == nullptr) {
    TRY(resolve_kernel_cast(e->a, to));
  } else {
    TRY(resolve(e->a));
  }
  const TypeId from = types_.decay(e->a->type);
  const bool to_same_space = types_.is_user_pointer(from) && types_.is_pointer(to);
  e->type = to_same_space ? types_.graph().user_pointer_to(types_.referent(to)) : to;
  const bool array = types_.is_array(e->a->type) && !types_.is_pointer(to);
  const bool scalars =
      types_.is_scalar(to) && types_.is_scalar(from) && !types_.is_string(from) && !array;
  const bool to_string =
      types_.is_string(to) && (types_.is_string_like(e->a->type) || types_.is_scalar(from));
  const bool same = types_.by_reference(to) && types_.same(to, e->a->type);
  // pr_psargs and the like are arrays of char elsewhere. As a char * a member's text stays what it
  // is, and as a number a text tells whether there is one.
  const bool to_text = is_member && types_.is_pointer(to) && types_.is_string_like(to);
  const bool of_string = types_.is_string(from) && (types_.is_integer(to) || to_text);
  if (of_string && !types_.is_integer(to)) e->type = e->a->type;
  if (!scalars && !to_string && !same && !of_string && !types_.is_void(to)) {
    return complain("D_CAST_INVAL", e->at,
                    fmt::format("invalid cast expression: \"{}\" to \"{}\"",
                                types_.name(e->a->type), types_.name(to)));
  }
  return fold(types_, e);
}

namespace {

/// GNU C has structures without members, or with a flexible array alone: sizeof is 0. Also arrays
/// of them.
bool is_empty_struct(const Types& types, TypeId id) {
  for (unsigned depth = 0; depth < 64 && types.is_array(id); ++depth) id = types.referent(id);
  const bool is_complete = types.is_struct(id) && types.kind(id) != TypeKind::Forward;
  return is_complete && types.measure(id) == 0;
}

}  // namespace

Checked<void> Resolver::resolve_sizeof(Expr* e) {
  TypeId type;
  if (e->kind == ExprKind::SizeofType) {
    type = TRY(type_resolver_.resolve_type_name(*e->type_name));
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
  if (size == 0 && !is_empty_struct(types_, type)) {
    return complain("D_SIZEOF_TYPE", e->at,
                    fmt::format("cannot apply sizeof to an operand of type {}", types_.name(type)));
  }
  e->type = types_.uint64;
  e->constant = size;
  return {};
}

Checked<void> Resolver::resolve_offsetof(Expr* e) {
  const TypeId type = TRY(type_resolver_.resolve_type_name(*e->type_name));
  if (!types_.is_struct(type) || (types_.measure(type) == 0 && !is_empty_struct(types_, type))) {
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

Checked<void> Resolver::resolve_stringof(Expr* e) {
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

Checked<void> Resolver::resolve_address_of(Expr* e) {
  if (e->a->kind == ExprKind::KernelSymbol) {
    TRY(resolve_kernel_address(e->a));
  } else {
    TRY(resolve(e->a));
  }
  const Expr& a = *e->a;
  if (a.identifier != nullptr || a.kind == ExprKind::Aggregation) {
    return complain("D_ADDROF_VAR", e->at, "cannot take the address of a D variable");
  }
  if (!a.is_lvalue) {
    return complain("D_ADDROF_LVAL", e->at, "operator & operand must be an lvalue");
  }
  if ((a.kind == ExprKind::Member || a.kind == ExprKind::Arrow) && a.member.bit_width != 0) {
    return complain("D_ADDROF_BITFIELD", e->at, "cannot take the address of a bit-field");
  }
  e->type = types_.graph().pointer_to(a.type);
  return {};
}

Checked<void> Resolver::resolve_unary(Expr* e) {
  if (e->op == Op::AddressOf) return resolve_address_of(e);
  if (e->op == Op::PreInc || e->op == Op::PreDec || e->op == Op::PostInc || e->op == Op::PostDec) {
    return resolve_step(e);
  }
  if (e->op == Op::Deref) {
    TRY(resolve_dynamic(e->a));
    if (dereference_translation(e)) return {};
    TRY(settle_translation(e->a, "D_OP_DYN"));
    return rules_.type_unary(e);
  }
  TRY(is_compared(e->op) ? resolve_compared(e->a, "D_OP_DYN") : resolve(e->a, "D_OP_DYN"));
  return rules_.type_unary(e);
}

Checked<void> Resolver::resolve_binary(Expr* e) {
  for (Expr* const operand : {e->a, e->b}) {
    TRY(is_compared(e->op) ? resolve_compared(operand, "D_OP_DYN") : resolve(operand, "D_OP_DYN"));
  }
  return rules_.type_binary(e);
}

Checked<bool> Resolver::take_known_side(Expr* e) {
  TRY(resolve_condition(e->a));
  const auto which = known_value(*e->a);
  if (!which) return false;
  const Expr taken = *which != 0 ? *e->b : *e->c;
  *e = taken;
  return true;
}

Checked<void> Resolver::resolve_conditional(Expr* e) {
  if (TRY(take_known_side(e))) return resolve_dynamic(e);
  TRY(resolve(e->b));
  TRY(resolve(e->c));
  return rules_.type_conditional(e);
}

}  // namespace ringside::d
