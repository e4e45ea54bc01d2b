#include "dif/d/resolve/symbols.h"

namespace ringside::d {

Symbol* SymbolTable::find(Scope scope, const std::string& name) {
  const auto& table = scopes_[static_cast<std::size_t>(scope)];
  const auto at = table.find(name);
  if (at == table.end()) return nullptr;
  const bool later = scope == Scope::Global && version_ && pragmas_.is_later(name, *version_);
  return later ? nullptr : at->second;
}

bool SymbolTable::is_of_d(const std::string& name) const {
  return (dif::find_builtin(name) || is_function_name(name)) && !is_hidden(name);
}

bool SymbolTable::is_hidden(std::string_view name) const {
  return version_ && identifier_info(name).since > *version_;
}

Symbol* SymbolTable::keep(Symbol symbol) {
  symbols_.push_back(std::move(symbol));
  return &symbols_.back();
}

Checked<Symbol*> SymbolTable::add_variable(Scope scope, const std::string& name,
                                           const Location& at) {
  std::uint16_t& next = next_id_[static_cast<std::size_t>(scope)];
  if (next == UINT16_MAX) return complain("D_ID_OFLOW", at, "program has too many variables");
  Symbol symbol;
  symbol.name = name;
  symbol.scope = scope;
  symbol.id = next++;
  if (scope == Scope::Global) {
    pragmas_.forget_binding(name);  // of a library's, which this one hides
    pragmas_.apply(symbol);
  }
  Symbol* const kept = keep(std::move(symbol));
  scopes_[static_cast<std::size_t>(scope)].insert_or_assign(name, kept);
  return kept;
}

void SymbolTable::add_inline(Symbol symbol) {
  pragmas_.forget_binding(symbol.name);
  pragmas_.apply(symbol);
  Symbol* const kept = keep(std::move(symbol));
  scopes_[0].insert_or_assign(kept->name, kept);
}

Symbol* SymbolTable::add_builtin(Symbol symbol) {
  Symbol* const kept = keep(std::move(symbol));
  scopes_[0].emplace(kept->name, kept);
  return kept;
}

Symbol* SymbolTable::subroutine(const dif::SubroutineInfo& info) {
  Symbol*& known = subroutines_[std::string(info.name)];
  if (known == nullptr) {
    Symbol made;
    made.kind = Symbol::Kind::Subroutine;
    made.name = info.name;
    made.subroutine = info;
    known = keep(std::move(made));
  }
  return known;
}

}  // namespace ringside::d
