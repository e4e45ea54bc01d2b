#include "dif/d/resolve/identifier_table.h"

namespace ringside::d {

Identifier* IdentifierTable::find(Scope scope, const std::string& name) {
  const auto& table = scopes_[static_cast<std::size_t>(scope)];
  const auto at = table.find(name);
  if (at == table.end()) return nullptr;
  const bool later = scope == Scope::Global && version_ && pragmas_.is_later(name, *version_);
  return later ? nullptr : at->second;
}

bool IdentifierTable::is_of_d(const std::string& name) const {
  return (dif::find_builtin(name) || is_function_name(name)) && !is_hidden(name);
}

bool IdentifierTable::is_hidden(std::string_view name) const {
  return version_ && identifier_info(name).since > *version_;
}

Identifier* IdentifierTable::keep(Identifier identifier) {
  identifiers_.push_back(std::move(identifier));
  return &identifiers_.back();
}

Checked<Identifier*> IdentifierTable::add_variable(Scope scope, const std::string& name,
                                                   const Location& at) {
  std::uint16_t& next = next_id_[static_cast<std::size_t>(scope)];
  if (next == UINT16_MAX) return complain("D_ID_OFLOW", at, "program has too many variables");
  Identifier identifier;
  identifier.name = name;
  identifier.scope = scope;
  identifier.id = next++;
  if (scope == Scope::Global) {
    pragmas_.forget_binding(name);  // of a library's, which this one hides
    pragmas_.apply(identifier);
  }
  Identifier* const kept = keep(std::move(identifier));
  scopes_[static_cast<std::size_t>(scope)].insert_or_assign(name, kept);
  return kept;
}

void IdentifierTable::add_inline(Identifier identifier) {
  pragmas_.forget_binding(identifier.name);
  pragmas_.apply(identifier);
  Identifier* const kept = keep(std::move(identifier));
  scopes_[0].insert_or_assign(kept->name, kept);
}

Identifier* IdentifierTable::add_builtin(Identifier identifier) {
  Identifier* const kept = keep(std::move(identifier));
  scopes_[0].emplace(kept->name, kept);
  return kept;
}

Identifier* IdentifierTable::subroutine(const dif::SubroutineInfo& info) {
  Identifier*& known = subroutines_[std::string(info.name)];
  if (known == nullptr) {
    Identifier made;
    made.kind = Identifier::Kind::Subroutine;
    made.name = info.name;
    made.subroutine = info;
    known = keep(std::move(made));
  }
  return known;
}

}  // namespace ringside::d
