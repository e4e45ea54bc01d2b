// Names: variables, built-ins, inlines, enumerators, kernel symbols, args[] and associative arrays.
#include <fmt/format.h>

#include <algorithm>

#include "dif/bind/c_types.h"
#include "dif/d/resolve/resolve.h"
#include "dif/d/syntax/nodes.h"

namespace ringside::d {
namespace {

std::string_view scope_prefix(Scope scope) {
  return scope == Scope::Thread ? "self->" : scope == Scope::Clause ? "this->" : "";
}

Checked<void> no_scalar(std::string_view what, std::string_view name, const Location& at) {
  return complain("D_IDENT_BADREF", at,
                  fmt::format("{} '{}' may not be referenced as scalar", what, name));
}

}  // namespace

Checked<const Symbol*> Resolver::hidden_local(const std::string& name) {
  if (const Symbol* known = symbols_.find(Scope::Clause, name)) return known;
  Symbol* made = TRY(symbols_.add_variable(Scope::Clause, name, {}));
  made->type = types_.int64;
  return made;
}

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

/// True when the name is a built-in variable's.
Checked<bool> Resolver::builtin(Expr* e) {
  const std::string& text = *e->text;
  const auto builtin = dif::find_builtin(text);
  if (!builtin || symbols_.is_hidden(text)) return false;
  Symbol symbol;
  symbol.kind = Symbol::Kind::Builtin;
  symbol.name = text;
  symbol.id = static_cast<std::uint16_t>(builtin->id);
  symbol.type = builtin_type(builtin->type);
  symbol.attributes = identifier_info(text).attributes;
  if (builtin->id == dif::Builtin::Curthread) {
    if (const auto task = types_.graph().find(TypeKind::Struct, "task_struct")) {
      symbol.type = types_.graph().pointer_to(*task);
    }
  } else if (builtin->type == dif::BuiltinType::Pointer) {
    symbol.type = types_.uint64;  // caller and ucaller are numbers
  }
  TRY(stability_.note(symbol.attributes, text, e->at));
  e->symbol = symbols_.add_builtin(std::move(symbol));
  e->type = e->symbol->type;
  return true;
}

/// Complains about a name that nothing has.
Checked<void> Resolver::unknown_name(const Expr& e) const {
  const std::string& text = *e.text;
  if (is_function_name(text) && !symbols_.is_hidden(text)) return no_scalar("function", text, e.at);
  if (const std::string_view why = dif::absent_builtin(text); !why.empty()) {
    return complain("D_VAR_UNSUP", e.at, fmt::format("{} {}", text, why));
  }
  if (std::ranges::find(first_assigned_, text) != first_assigned_.end()) {
    return complain("D_VAR_UNDEF", e.at,
                    fmt::format("{} has not yet been declared or assigned", text));
  }
  return complain("D_IDENT_UNDEF", e.at,
                  fmt::format("failed to resolve {}: Unknown variable name", text));
}

Checked<void> Resolver::name(Expr* e) {
  const std::string& text = *e->text;
  Symbol* const symbol = symbols_.find(Scope::Global, text);
  if (symbol != nullptr) {
    TRY(stability_.note(symbol->attributes, text, e->at));
    if (symbol->is_associative) return no_scalar("associative array", text, e->at);
    if (symbol->kind == Symbol::Kind::Inline) return inline_value(e, *symbol);
    e->symbol = symbol;
    e->type = symbol->type;
    e->is_lvalue = symbol->kind == Symbol::Kind::Variable;
    return {};
  }
  if (TRY(builtin(e))) return {};
  if (text == "args" || text == "uregs" || text == "regs") {
    return no_scalar("array", text, e->at);
  }
  if (text == "NULL") {
    e->kind = ExprKind::Integer;
    e->type = types_.int32;
    e->constant = 0;
    return {};
  }
  const auto own = declared_.find_enumerator(text);
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

Checked<void> Resolver::scoped(Expr* e) {
  Symbol* symbol = symbols_.find(e->scope, *e->text);
  if (symbol == nullptr) {
    return complain("D_VAR_UNDEF", e->at,
                    fmt::format("{}{} has not yet been declared or assigned",
                                scope_prefix(e->scope), *e->text));
  }
  if (symbol->is_associative) {
    return no_scalar("associative array", std::string(scope_prefix(e->scope)) + *e->text, e->at);
  }
  e->symbol = symbol;
  e->type = symbol->type;
  e->is_lvalue = true;
  return {};
}

Checked<void> Resolver::kernel_symbol(Expr* e, bool address_only) {
  const std::string_view text = *e->text;
  const std::size_t tick = text.rfind('`');
  const std::string_view module = text.substr(0, tick), symbol = text.substr(tick + 1);
  const auto found = environment_.kernel_variable(module, symbol);
  if (!found) {
    return complain("D_IDENT_UNDEF", e->at,
                    fmt::format("failed to resolve {}: Unknown symbol name", text));
  }
  TRY(stability_.note(kPrivate, text, e->at));
  e->module = arena_.make(std::string(found->module));
  e->container = {};
  e->is_lvalue = true;
  const Symbol* declared = symbols_.find(Scope::Global, std::string(symbol));
  if (const auto known = externs_.find(std::string(symbol)); known != externs_.end()) {
    e->type = known->second;
  } else if (declared != nullptr && declared->is_extern) {
    e->type = declared->type;
  } else if (found->type) {
    e->type = *found->type;
    e->container = e->type;
  } else if (address_only) {
    e->type = TypeId{};
  } else {
    return complain(
        "D_SYM_NOTYPES", e->at,
        fmt::format("no symbolic type information is available for {0}: declare it with "
                    "extern, or cast its address: *(type *)&{0}",
                    text));
  }
  return {};
}

/// A cast says what a symbol of unknown type holds: (int)`sym reads an int.
Checked<void> Resolver::cast_symbol(Expr* e, TypeId to) {
  if (!types_.is_scalar(to) || types_.is_string(to)) return kernel_symbol(e, false);
  TRY(kernel_symbol(e, true));
  if (e->type == TypeId{}) e->type = to;
  return {};
}

std::vector<dif::ArgumentType> Resolver::take_argument_types() {
  std::vector<dif::ArgumentType> result;
  for (auto& [index, type] : std::exchange(used_arguments_, {})) {
    result.push_back({index, std::move(type)});
  }
  return result;
}

void Resolver::enter_clause(std::vector<dif::ProbeDescription> probes) {
  probes_.enter(std::move(probes));
  first_assigned_.clear();
}

Checked<void> Resolver::args_index(Expr* e) {
  if (e->list.size() != 1) {
    return complain("D_PROTO_LEN", e->at, "args[ ] prototype mismatch: one index is expected");
  }
  TRY(resolve(e->list[0]));
  const auto index = known(*e->list[0]);
  if (!index || !types_.is_integer(e->list[0]->type)) {
    return complain(
        "D_PROTO_ARG", e->list[0]->at,
        "args[ ] argument #1 is incompatible with prototype: integer constant expected");
  }
  const std::uint64_t position = *index;
  const ProbeSignature known = TRY(probes_.signature(e->at));
  TRY(stability_.note(known.attributes.arguments, "args[ ]", e->at));
  if (!known.translated.empty() && !e->is_native) return translated_argument(e, known, position);
  e->symbol = nullptr;
  e->address = position;
  if (e->is_native && position >= known.arguments.size()) {  // the provider knows no type of it
    e->type = types_.int64;
    return {};
  }
  if (position >= known.arguments.size() || position >= dif::kMaxProbeArguments) {
    return complain("D_ARGS_IDX", e->list[0]->at,
                    fmt::format("index {} is out of range for {} args[ ]{}",
                                static_cast<std::int64_t>(position), known.first.to_string(),
                                known.has_types ? "" : ": no types are known, use arg0 to arg9"));
  }
  e->type = types_.decay(known.arguments[position]);
  if (!types_.is_scalar(e->type)) {
    return complain(
        "D_ARGS_TYPE", e->at,
        fmt::format("args[{}] of type {} is not supported yet", position, types_.name(e->type)));
  }
  use_argument(known, position);
  return {};
}

/// Another kernel's probe may pass something else there.
void Resolver::use_argument(const ProbeSignature& known, std::uint64_t position) {
  if (position >= known.arguments.size()) return;
  used_arguments_.insert_or_assign(static_cast<std::uint32_t>(position),
                                   dif::type_text(types_.graph(), known.arguments[position]));
}

/// args[n] as the provider presents it: `n`'s native argument, through a library's translator.
Checked<void> Resolver::translated_argument(Expr* e, const ProbeSignature& known,
                                            std::uint64_t position) {
  if (position >= known.translated.size()) {
    return complain("D_ARGS_IDX", e->list[0]->at,
                    fmt::format("index {} is out of range for {} args[ ]",
                                static_cast<std::int64_t>(position), known.first.to_string()));
  }
  const ProbeSignature::Translated& wanted = known.translated[position];
  std::string_view name = wanted.type;
  const bool pointer = name.ends_with(" *");
  if (pointer) name.remove_suffix(2);
  const std::optional<TypeId> type = declared_.find_named(name);
  Expr* native = arena_.make(Expr(*e));
  native->is_native = true;
  Expr* index = make_node(arena_, ExprKind::Integer, e->at);
  index->type = types_.int64;
  index->constant = wanted.native;
  native->list = {index};
  TRY(args_index(native));
  const Translator* translator = type ? translators_.find(*type, native->type) : nullptr;
  if (translator == nullptr) {
    if (type && !types_.is_struct(*type)) return become(e, native, *type);
    return complain("D_ARGS_XLATOR", e->at,
                    fmt::format("translator for args[{}] from type {} to type {} is not defined",
                                position, types_.name(native->type), wanted.type));
  }
  translations_.push_back({translator, native, nullptr, pointer});
  e->kind = ExprKind::Xlate;
  e->type_name = nullptr;
  e->list.clear();
  e->a = native;
  e->translation = &translations_.back();
  e->type = pointer ? types_.graph().pointer_to(*type) : *type;
  return {};
}

/// One key. The first use of an array says what types its keys have.
Checked<void> Resolver::key(const Expr& e, Symbol* array, std::size_t position, bool fresh) {
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
    array->keys.push_back(e.type);
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

Checked<void> Resolver::keys(Expr* e, Symbol* array) {
  for (Expr* key : e->list) TRY(resolve(key));
  const bool fresh = array->keys.empty();
  if (!fresh && array->keys.size() != e->list.size()) {
    return complain(
        "D_PROTO_LEN", e->at,
        fmt::format("{}[ ] prototype mismatch: {} key{} passed, {} expected", array->name,
                    e->list.size(), e->list.size() == 1 ? "" : "s", array->keys.size()));
  }
  for (std::size_t i = 0; i < e->list.size(); ++i) TRY(key(*e->list[i], array, i, fresh));
  return {};
}

Checked<void> Resolver::associative_index(Expr* e, Symbol* array) {
  if (!array->is_associative) {
    return complain("D_OP_PTR", e->at, fmt::format("{} is not an array", array->name));
  }
  TRY(keys(e, array));
  e->symbol = array;
  e->type = array->type;
  e->is_lvalue = true;
  return {};
}

/// regs[n] and uregs[n]: which of them is in e->text, for the code generator.
Checked<void> Resolver::register_index(Expr* e) {
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

/// name[key] of a name that nothing declared yet; reading does not declare it.
Checked<void> Resolver::undeclared_array(const Expr& base) {
  if (base.kind == ExprKind::Scoped && base.scope == Scope::Clause &&
      symbols_.find(Scope::Clause, *base.text) == nullptr) {
    return complain("D_ARR_LOCAL", base.at,
                    fmt::format("clause-local variables may not be used as associative arrays: {}",
                                *base.text));
  }
  if (base.kind != ExprKind::Name || symbols_.find(Scope::Global, *base.text) != nullptr) return {};
  const std::string& text = *base.text;
  const bool known = symbols_.is_of_d(text) || declared_.find_enumerator(text) ||
                     types_.graph().find_enumerator(text) || !dif::absent_builtin(text).empty() ||
                     text == "NULL";
  if (known) return {};
  return complain("D_VAR_UNDEF", base.at,
                  fmt::format("{} has not yet been declared or assigned", text));
}

Checked<void> Resolver::index(Expr* e) {
  Expr* base = e->a;
  if (base->kind == ExprKind::Name && *base->text == "args" &&
      !symbols_.find(Scope::Global, "args")) {
    return args_index(e);
  }
  const bool registers =
      base->kind == ExprKind::Name && (*base->text == "regs" || *base->text == "uregs");
  if (registers && !symbols_.find(Scope::Global, *base->text)) return register_index(e);
  if (base->kind == ExprKind::Name || base->kind == ExprKind::Scoped) {
    const Scope scope = base->kind == ExprKind::Name ? Scope::Global : base->scope;
    Symbol* symbol = symbols_.find(scope, *base->text);
    if (symbol != nullptr && symbol->is_associative) {
      TRY(stability_.note(symbol->attributes, symbol->name, base->at));
      if (symbol->kind == Symbol::Kind::Inline) return inline_index(e, *symbol);
      return associative_index(e, symbol);
    }
  }
  TRY(undeclared_array(*base));
  TRY(resolve(base));
  if (e->list.size() != 1) {
    const bool named = base->kind == ExprKind::Name || base->kind == ExprKind::Scoped;
    return complain("D_ARR_BADREF", e->at,
                    fmt::format("cannot access scalar {} as an associative array",
                                named ? *base->text : std::string("array")));
  }
  TRY(resolve(e->list[0]));
  return rules_.element(e);
}

}  // namespace ringside::d
