#include "dif/d/resolve/identifier_table.h"

#include <fmt/format.h>

#include <utility>

namespace ringside::d {

Identifier* IdentifierTable::find(Scope scope, const std::string& name) {
  const auto& table = scopes_[static_cast<std::size_t>(scope)];
  const auto at = table.find(name);
  if (at == table.end()) return nullptr;
  const bool later = scope == Scope::Global && version_ && pragmas_.is_later(name, *version_);
  return later ? nullptr : at->second;
}

void IdentifierTable::note_assigned(Scope scope, const std::string& name, const Location& at,
                                    std::string_view type) {
  const auto [known, is_new] = assigned_[static_cast<std::size_t>(scope)].try_emplace(name);
  const auto order = [](const Location& place) {
    return std::pair(place.source_line, place.column);
  };
  if (is_new || order(at) < order(known->second.at)) known->second = {at, std::string(type)};
}

std::string IdentifierTable::suggest(Scope scope, const std::string& name,
                                     const Location& at) const {
  const auto& assigned = assigned_[static_cast<std::size_t>(scope)];
  if (const auto found = assigned.find(name); found != assigned.end()) {
    const auto& [later, type] = found->second;
    const int lines = later.source_line - at.source_line;
    if (lines > 0 || (lines == 0 && later.column > at.column)) {
      const std::string_view prefix = scope == Scope::Global   ? ""
                                      : scope == Scope::Thread ? "self "
                                                               : "this ";
      return fmt::format("; it is assigned later, {}at column {}: declare {} before",
                         lines == 0   ? ""
                         : lines == 1 ? "on the next line "
                                      : fmt::format("{} lines further down ", lines),
                         later.column,
                         type.empty() ? "it" : fmt::format("`{}{} {};`", prefix, type, name));
    }
  }
  SimilarName similar(name);
  for (const auto& [known, identifier] : scopes_[static_cast<std::size_t>(scope)]) {
    similar.offer(known);
  }
  if (scope == Scope::Global) offer_variables(similar);
  return did_you_mean(similar.best());
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
