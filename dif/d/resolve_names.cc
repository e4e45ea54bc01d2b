// Names: variables, built-ins, inlines, enumerators, kernel symbols, args[] and associative arrays.
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/resolve.h"

namespace ringside::d {
namespace {

constexpr std::size_t kMaxClones = 100'000;

std::string_view scope_prefix(Scope scope) {
  return scope == Scope::Thread ? "self->" : scope == Scope::Clause ? "this->" : "";
}

}  // namespace

Symbol* Resolver::find(Scope scope, const std::string& name) {
  const auto& table = scopes_[static_cast<std::size_t>(scope)];
  const auto at = table.find(name);
  return at == table.end() ? nullptr : at->second;
}

Symbol* Resolver::add_variable(Scope scope, const std::string& name) {
  Symbol symbol;
  symbol.name = name;
  symbol.scope = scope;
  symbol.id = next_id_[static_cast<std::size_t>(scope)]++;
  symbols_.push_back(std::move(symbol));
  scopes_[static_cast<std::size_t>(scope)].emplace(name, &symbols_.back());
  return &symbols_.back();
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

Checked<void> Resolver::name(Expr* e) {
  const std::string& text = *e->text;
  if (Symbol* symbol = find(Scope::Global, text)) {
    if (symbol->kind == Symbol::Kind::Inline) return inline_value(e, *symbol);
    if (symbol->is_associative) {
      return complain("D_ARR_BADREF", e->at,
                      fmt::format("associative array {} may not be used without its keys", text));
    }
    e->symbol = symbol;
    e->type = symbol->type;
    e->is_lvalue = symbol->kind == Symbol::Kind::Variable;
    return {};
  }
  if (const auto builtin = dif::find_builtin(text)) {
    Symbol symbol;
    symbol.kind = Symbol::Kind::Builtin;
    symbol.name = text;
    symbol.id = static_cast<std::uint16_t>(builtin->id);
    symbol.type = builtin_type(builtin->type);
    if (builtin->id == dif::Builtin::Curthread) {
      if (const auto task = types_.graph().find(TypeKind::Struct, "task_struct")) {
        symbol.type = types_.graph().pointer_to(*task);
      }
    } else if (builtin->type == dif::BuiltinType::Pointer) {
      symbol.type = types_.uint64;  // caller and ucaller are numbers
    }
    symbols_.push_back(std::move(symbol));
    scopes_[0].emplace(text, &symbols_.back());
    e->symbol = &symbols_.back();
    e->type = e->symbol->type;
    return {};
  }
  if (text == "args") {
    return complain("D_ARR_BADREF", e->at, "args[] may not be used without its index");
  }
  if (text == "NULL") {
    e->kind = ExprKind::Integer;
    e->type = types_.void_pointer;
    e->constant = 0;
    return {};
  }
  const auto own = enumerators_.find(text);
  const auto known =
      own != enumerators_.end() ? std::optional(own->second) : types_.graph().find_enumerator(text);
  if (!known) {
    return complain("D_IDENT_UNDEF", e->at,
                    fmt::format("failed to resolve {}: Unknown variable name", text));
  }
  e->kind = ExprKind::Integer;
  e->type = types_.is_integer(known->first) ? known->first : types_.int64;
  e->constant = static_cast<std::uint64_t>(known->second);
  return {};
}

Checked<void> Resolver::scoped(Expr* e) {
  Symbol* symbol = find(e->scope, *e->text);
  if (symbol == nullptr) {
    return complain("D_VAR_UNDEF", e->at,
                    fmt::format("{}{} has not yet been declared or assigned",
                                scope_prefix(e->scope), *e->text));
  }
  if (symbol->is_associative) {
    return complain("D_ARR_BADREF", e->at,
                    fmt::format("associative array {}{} may not be used without its keys",
                                scope_prefix(e->scope), *e->text));
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
  e->address = found->address.raw();
  e->is_lvalue = true;
  if (found->type) {
    e->type = *found->type;
    return {};
  }
  const Symbol* declared = find(Scope::Global, std::string(symbol));
  if (declared != nullptr && declared->is_extern) {
    e->type = declared->type;
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

Expr* Resolver::clone(const Expr& e, const Location& at) {
  if (++clones_ > kMaxClones) return nullptr;
  Expr* copy = arena_.make(Expr(e));
  copy->at = at;
  for (Expr** part : {&copy->a, &copy->b, &copy->c}) {
    if (*part == nullptr) continue;
    *part = clone(**part, at);
    if (*part == nullptr) return nullptr;
  }
  for (Expr*& part : copy->list) {
    part = clone(*part, at);
    if (part == nullptr) return nullptr;
  }
  return copy;
}

/// An inline stands for its expression, converted to its type. It can only name what was defined
/// before it, so this ends; how much it can grow is bounded.
Checked<void> Resolver::inline_value(Expr* e, const Symbol& symbol) {
  Expr* value = clone(*symbol.value, e->at);
  if (value == nullptr) {
    return complain("D_UNKNOWN", e->at, fmt::format("inline {} grows too large", symbol.name));
  }
  TRY(resolve(value));
  TRY(check_assignable(*e, symbol.type, *value));
  e->kind = ExprKind::Cast;
  e->a = value;
  e->type = symbol.type;
  return fold(e);
}

void Resolver::enter_clause(std::vector<dif::ProbeDescription> probes) {
  probes_ = std::move(probes);
  signature_.reset();
}

/// One signature for all probes of the clause, or the reason why there is none.
Checked<ProbeSignature> Resolver::signature(const Location& at) {
  if (signature_) return *signature_;
  std::optional<ProbeSignature> common;
  for (const dif::ProbeDescription& probe : probes_) {
    ProbeSignature found = environment_.signature(probe);
    if (found.matched == 0) continue;
    const bool agrees =
        !common || (common->has_types == found.has_types &&
                    common->arguments.size() == found.arguments.size() &&
                    std::ranges::equal(common->arguments, found.arguments,
                                       [&](TypeId a, TypeId b) { return types_.same(a, b); }));
    if (!agrees) {
      signature_ =
          complain("D_ARGS_MULTI", at,
                   fmt::format("args[ ] may not be referenced because probe description {} "
                               "matches an unstable set of probes",
                               probe.to_string()));
      return *signature_;
    }
    if (!common) common = std::move(found);
  }
  if (!common || !common->has_types) {
    signature_ =
        complain("D_ARGS_NONE", at,
                 fmt::format("args[ ] may not be referenced because the types of the arguments "
                             "of {} are not known",
                             probes_.empty() ? "" : probes_[0].to_string()));
    return *signature_;
  }
  signature_ = std::move(*common);
  return *signature_;
}

Checked<void> Resolver::args_index(Expr* e) {
  if (e->list.size() != 1) {
    return complain("D_PROTO_LEN", e->at, "args[ ] prototype mismatch: one index is expected");
  }
  TRY(resolve(e->list[0]));
  if (!e->list[0]->constant || !types_.is_integer(e->list[0]->type)) {
    return complain("D_ARGS_TYPE", e->list[0]->at,
                    "args[ ] must be indexed by an integer constant");
  }
  const std::uint64_t position = *e->list[0]->constant;
  const ProbeSignature known = TRY(signature(e->at));
  if (position >= known.arguments.size() || position >= dif::kMaxProbeArguments) {
    return complain("D_ARGS_IDX", e->list[0]->at,
                    fmt::format("index {} is out of range for {} args[ ]",
                                static_cast<std::int64_t>(position), known.first.to_string()));
  }
  e->type = types_.decay(known.arguments[position]);
  if (!types_.is_scalar(e->type)) {
    return complain(
        "D_ARGS_TYPE", e->at,
        fmt::format("args[{}] of type {} is not supported yet", position, types_.name(e->type)));
  }
  e->symbol = nullptr;
  e->address = position;
  return {};
}

Checked<void> Resolver::keys(Expr* e, Symbol* array) {
  for (Expr* key : e->list) TRY(resolve(key));
  if (e->list.size() > dif::kTupleSlots) {
    return complain("D_PROTO_LEN", e->at,
                    fmt::format("{}[ ] has more than {} keys", array->name, dif::kTupleSlots));
  }
  const bool fresh = array->keys.empty();
  if (!fresh && array->keys.size() != e->list.size()) {
    return complain(
        "D_PROTO_LEN", e->at,
        fmt::format("{}[ ] prototype mismatch: {} key{} passed, {} expected", array->name,
                    e->list.size(), e->list.size() == 1 ? "" : "s", array->keys.size()));
  }
  for (std::size_t i = 0; i < e->list.size(); ++i) {
    const Expr& key = *e->list[i];
    if (!types_.value_type(key.type)) {
      return complain("D_KEY_TYPE", key.at,
                      fmt::format("key #{} of {}[ ] has a type that cannot be a key: {}", i + 1,
                                  array->name, types_.name(key.type)));
    }
    if (fresh) {
      array->keys.push_back(key.type);
      continue;
    }
    const TypeId expected = array->keys[i];
    const bool fits = (types_.is_integer(expected) && types_.is_integer(key.type)) ||
                      (types_.is_string_like(expected) && types_.is_string_like(key.type)) ||
                      (types_.is_pointer(expected) &&
                       (types_.is_pointer(key.type) || types_.is_integer(key.type))) ||
                      types_.same(expected, key.type);
    if (!fits) {
      return complain(
          "D_PROTO_ARG", key.at,
          fmt::format("{}[ ] key #{} is incompatible with prototype: prototype: {}, argument: {}",
                      array->name, i + 1, types_.name(expected), types_.name(key.type)));
    }
  }
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

Checked<void> Resolver::index(Expr* e) {
  Expr* base = e->a;
  if (base->kind == ExprKind::Name && *base->text == "args" && !find(Scope::Global, "args")) {
    return args_index(e);
  }
  if (base->kind == ExprKind::Name && *base->text == "uregs") {
    return complain("D_UNKNOWN", base->at, "uregs[ ] is not supported yet");
  }
  if (base->kind == ExprKind::Name || base->kind == ExprKind::Scoped) {
    const Scope scope = base->kind == ExprKind::Name ? Scope::Global : base->scope;
    Symbol* symbol = find(scope, *base->text);
    if (symbol != nullptr && symbol->kind == Symbol::Kind::Variable && symbol->is_associative) {
      return associative_index(e, symbol);
    }
  }
  TRY(resolve(base));
  if (e->list.size() != 1) {
    return complain("D_PROTO_LEN", e->at, "an array in memory has one index for each dimension");
  }
  TRY(resolve(e->list[0]));
  const TypeId pointer = types_.decay(base->type);
  if (!types_.is_pointer(pointer) || !types_.is_integer(e->list[0]->type)) {
    return complain("D_OP_PTR", e->at,
                    "operator [ ] requires an array or pointer and an integer index");
  }
  e->type = types_.referent(pointer);
  if (types_.size(e->type) == 0) {
    return complain(
        "D_OP_INCOMPLETE", e->at,
        fmt::format("operator [ ] cannot be applied to elements of type {}", types_.name(e->type)));
  }
  e->is_lvalue = true;
  return {};
}

}  // namespace ringside::d
