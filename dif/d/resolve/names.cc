// In this file: names in expressions, arrays of them, and variables of the kernel.
#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

#include "dif/d/resolve/resolve.h"
#include "dif/d/syntax/print_tree.h"
#include "vmm/base/c_type.h"
#include "vmm/base/similar_name.h"

namespace ringside::d {

namespace {

Checked<void> no_scalar(std::string_view what, std::string_view name, const Location& at) {
  return complain("D_IDENT_BADREF", at,
                  fmt::format("{} '{}' may not be referenced as scalar", what, name));
}

}  // namespace

/// Complains about a name that nothing has.
Checked<void> Resolver::unknown_name(const Expr& e) const {
  const std::string& text = *e.text;
  if (is_function_name(text) && !identifiers_.is_hidden(text))
    return no_scalar("function", text, e.at);
  if (const std::string_view why = dif::absent_builtin(text); !why.empty()) {
    return complain("D_VAR_UNSUP", e.at, fmt::format("{} {}", text, why));
  }
  if (was_to_declare(text)) {
    return complain("D_VAR_UNDEF", e.at,
                    fmt::format("{} has not yet been declared or assigned", text));
  }
  return complain("D_IDENT_UNDEF", e.at,
                  fmt::format("failed to resolve {}: Unknown variable name{}", text,
                              identifiers_.suggest_similar(Scope::Global, text, e.at)));
}

Checked<void> Resolver::resolve_name(Expr* e) {
  const std::string& text = *e->text;
  Identifier* const identifier = identifiers_.find_identifier(Scope::Global, text);
  if (identifier != nullptr) {
    TRY(stability_.note(identifier->attributes, text, e->at));
    if (identifier->is_associative) return no_scalar("associative array", text, e->at);
    if (identifier->kind == Identifier::Kind::Inline) return expand_inline(e, *identifier);
    e->identifier = identifier;
    e->type = identifier->type;
    e->is_lvalue = identifier->kind == Identifier::Kind::Variable;
    return {};
  }
  if (TRY(resolve_builtin(e))) return {};
  if (text == "args" || text == "uregs" || text == "regs") {
    return no_scalar("array", text, e->at);
  }
  if (text == "NULL") {
    e->kind = ExprKind::Integer;
    e->type = types_.int32;
    e->constant = 0;
    return {};
  }
  const auto own = type_resolver_.find_enumerator(text);
  const auto known = own ? own : types_.graph().find_enumerator(text);
  if (!known) return unknown_name(*e);
  if (!own) TRY(stability_.note(kPrivate, text, e->at));
  e->container = types_.graph().resolve(known->first);
  e->late = !own && namer_.is_kernel_type(e->container);
  if (!e->late) e->kind = ExprKind::Integer;
  e->type = types_.is_integer(known->first) ? known->first : types_.int64;
  e->constant = static_cast<std::uint64_t>(known->second);
  return {};
}

Checked<void> Resolver::resolve_scoped(Expr* e) {
  Identifier* identifier = identifiers_.find_identifier(e->scope, *e->text);
  if (identifier == nullptr) {
    const std::string nearest = identifiers_.suggest_similar(e->scope, *e->text, e->at);
    return complain(
        "D_VAR_UNDEF", e->at,
        fmt::format("{} has not yet been declared or assigned{}", print_expression(*e), nearest));
  }
  if (identifier->is_associative) {
    return no_scalar("associative array", print_expression(*e), e->at);
  }
  e->identifier = identifier;
  e->type = identifier->type;
  e->is_lvalue = true;
  return {};
}

Checked<void> Resolver::resolve_aggregation(Expr* e) {
  e->type = TypeId{};  // has no value
  if (aggregations_.contains(*e->text)) return {};
  const std::string nearest = similar_name(*e->text, aggregations_, std::identity());
  return complain("D_IDENT_UNDEF", e->at,
                  fmt::format("failed to resolve @{}: Unknown variable name{}", *e->text,
                              did_you_mean(nearest, "@")));
}

/// One key. The first use of an array says what types its keys have.
Checked<void> Resolver::check_key(const Expr& e, Identifier* array, std::size_t position,
                                  bool fresh) {
  if (!types_.value_type(e.type)) {
    return complain("D_KEY_TYPE", e.at,
                    fmt::format("key #{} of {}[ ] has a type that cannot be a key: {}",
                                position + 1, array->name, types_.name(e.type)));
  }
  if (types_.is_float(e.type)) {
    return complain("D_PROTO_ARG", e.at,
                    fmt::format("{}[ ] key #{} may not be of type {}", array->name, position + 1,
                                types_.name(e.type)));
  }
  if (fresh) {
    array->keys.push_back(types_.graph().without_userland(e.type));
    return {};
  }
  const TypeId expected = array->keys[position];
  const bool fits =
      (types_.is_integer(expected) && types_.is_integer(e.type)) ||
      (types_.is_string_like(expected) && types_.is_string_like(e.type)) ||
      (types_.is_pointer(expected) && (types_.is_pointer(e.type) || types_.is_integer(e.type))) ||
      types_.same(expected, e.type);
  if (fits) return {};
  return complain(
      "D_PROTO_ARG", e.at,
      fmt::format("{}[ ] key #{} is incompatible with prototype: prototype: {}, argument: {}",
                  array->name, position + 1, types_.name(expected), types_.name(e.type)));
}

Checked<void> Resolver::resolve_keys(Expr* e, Identifier* array) {
  for (Expr* key : e->list) TRY(resolve(key));
  const bool fresh = array->keys.empty();
  if (!fresh && array->keys.size() != e->list.size()) {
    return complain(
        "D_PROTO_LEN", e->at,
        fmt::format("{}[ ] prototype mismatch: {} key{} passed, {} expected", array->name,
                    e->list.size(), e->list.size() == 1 ? "" : "s", array->keys.size()));
  }
  for (std::size_t i = 0; i < e->list.size(); ++i) TRY(check_key(*e->list[i], array, i, fresh));
  return {};
}

Checked<void> Resolver::resolve_element(Expr* e, Identifier* array) {
  if (!array->is_associative) {
    return complain("D_OP_PTR", e->at, fmt::format("{} is not an array", array->name));
  }
  TRY(resolve_keys(e, array));
  e->identifier = array;
  e->type = array->type;
  e->is_lvalue = true;
  return {};
}

/// name[key] of a name that nothing declared yet; reading does not declare it.
Checked<void> Resolver::check_array_declared(const Expr& base) {
  if (base.kind == ExprKind::Scoped && base.scope == Scope::Clause &&
      identifiers_.find_identifier(Scope::Clause, *base.text) == nullptr) {
    return complain("D_ARR_LOCAL", base.at,
                    fmt::format("clause-local variables may not be used as associative arrays: {}",
                                *base.text));
  }
  if (base.kind != ExprKind::Name ||
      identifiers_.find_identifier(Scope::Global, *base.text) != nullptr)
    return {};
  const std::string& text = *base.text;
  const bool known = identifiers_.is_of_d(text) || type_resolver_.find_enumerator(text) ||
                     types_.graph().find_enumerator(text) || !dif::absent_builtin(text).empty() ||
                     text == "NULL";
  if (known) return {};
  return complain("D_VAR_UNDEF", base.at,
                  fmt::format("{} has not yet been declared or assigned{}", text,
                              identifiers_.suggest_similar(Scope::Global, text, base.at)));
}

Checked<void> Resolver::resolve_index(Expr* e) {
  Expr* base = e->a;
  if (base->kind == ExprKind::Name && *base->text == "args" &&
      !identifiers_.find_identifier(Scope::Global, "args")) {
    return resolve_argument(e);
  }
  const bool registers =
      base->kind == ExprKind::Name && (*base->text == "regs" || *base->text == "uregs");
  if (registers && !identifiers_.find_identifier(Scope::Global, *base->text))
    return resolve_register(e);
  if (base->kind == ExprKind::Name || base->kind == ExprKind::Scoped) {
    const Scope scope = base->kind == ExprKind::Name ? Scope::Global : base->scope;
    Identifier* identifier = identifiers_.find_identifier(scope, *base->text);
    if (identifier != nullptr && identifier->is_associative) {
      TRY(stability_.note(identifier->attributes, identifier->name, base->at));
      if (identifier->kind == Identifier::Kind::Inline)
        return expand_inline_with_keys(e, *identifier);
      return resolve_element(e, identifier);
    }
  }
  if (base->kind == ExprKind::KernelSymbol) {
    const Identifier* const other = find_stand_in(*base);
    if (other != nullptr && other->is_associative) return expand_inline_with_keys(e, *other);
  }
  TRY(check_array_declared(*base));
  TRY(resolve(base));
  if (e->list.size() != 1) {
    const bool named = base->kind == ExprKind::Name || base->kind == ExprKind::Scoped;
    return complain("D_ARR_BADREF", e->at,
                    fmt::format("cannot access scalar {} as an associative array",
                                named ? *base->text : std::string("array")));
  }
  TRY(resolve(e->list[0]));
  return rules_.type_element(e);
}

const Identifier* Resolver::find_stand_in(const Expr& e) const {
  const std::string_view text = *e.text;
  const std::size_t tick = text.rfind('`');
  const std::string_view module = text.substr(0, tick), symbol = text.substr(tick + 1);
  if (!module.empty() && module != "genunix" && module != "unix") return nullptr;
  const Identifier* const found =
      identifiers_.find_identifier(Scope::Global, fmt::format("__genunix_{}", symbol));
  const bool is_inline = found != nullptr && found->kind == Identifier::Kind::Inline;
  return is_inline && !environment_.kernel_variable(module, symbol) ? found : nullptr;
}

/// Whether the type is known, of a variable that is there.
Checked<bool> Resolver::find_kernel_variable(Expr* e) {
  const std::string_view text = *e->text;
  const std::size_t tick = text.rfind('`');
  const std::string_view module = text.substr(0, tick), symbol = text.substr(tick + 1);
  const auto found = environment_.kernel_variable(module, symbol);
  if (!found) {
    const std::string nearest = environment_.similar_kernel_variable(module, symbol);
    return complain("D_IDENT_UNDEF", e->at,
                    fmt::format("failed to resolve {}: Unknown symbol name{}", text,
                                did_you_mean(nearest, "`")));
  }
  TRY(stability_.note(kPrivate, text, e->at));
  e->module = arena_.make(std::string(found->module));
  e->container = {};
  e->is_lvalue = true;
  if (const auto declared = identifiers_.find_extern_type(std::string(symbol))) {
    e->type = *declared;
    return true;
  }
  e->type = found->type.value_or(TypeId{});
  e->container = e->type;
  return found->type.has_value();
}

Checked<void> Resolver::resolve_kernel_variable(Expr* e) {
  if (TRY(find_kernel_variable(e))) return {};
  const std::string_view text = *e->text;
  if (const auto own = types_.graph().find(percpu_variable_key(text.substr(text.rfind('`') + 1)))) {
    return complain("D_SYM_NOTYPES", e->at,
                    fmt::format("each CPU has its own {0}: the one of the CPU that fires is "
                                "*({1})((uintptr_t)&{0} + `__per_cpu_offset[cpu])",
                                text, types_.name(types_.graph().pointer_to(*own))));
  }
  return complain("D_SYM_NOTYPES", e->at,
                  fmt::format("no symbolic type information is available for {0}: declare it with "
                              "extern, or cast its address: *(type *)&{0}",
                              text));
}

Checked<void> Resolver::resolve_kernel_address(Expr* e) {
  TRY(find_kernel_variable(e));
  return {};
}

Checked<void> Resolver::resolve_kernel_cast(Expr* e, TypeId to) {
  if (!types_.is_scalar(to) || types_.is_string(to)) return resolve_kernel_variable(e);
  TRY(resolve_kernel_address(e));
  if (e->type == TypeId{}) e->type = to;
  return {};
}

}  // namespace ringside::d
