// In this file: the table of D's own names, pragmas about names, the names of a program, and the
// stability of those that a clause uses.
#include "dif/d/resolve/identifier_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "dif/program/action_kind.h"
#include "dif/program/builtin.h"

namespace ringside::d {

namespace {

using dif::Attributes;
using dif::DependencyClass;
using dif::Stability;

constexpr Attributes kStable{};
constexpr Attributes kIsa{Stability::Stable, Stability::Stable, DependencyClass::Isa};
constexpr Attributes kPrivateData{Stability::Stable, Stability::Private, DependencyClass::Common};
constexpr Attributes kEvolving{Stability::Evolving, Stability::Evolving, DependencyClass::Common};

/// Those that are not Stable/Stable/Common since 1.0. Sorted by name.
constexpr IdentifierInfo kIdentifiers[] = {
    {"breakpoint", kIsa},
    {"curthread", kPrivateData},
    {"execargs", kStable, {1, 10, 0}},
    {"freopen", kStable, {1, 1, 0}},
    {"func", kStable, {1, 2, 0}},
    {"getf", kStable, {1, 10, 0}},
    {"htonl", kStable, {1, 3, 0}},
    {"htonll", kStable, {1, 3, 0}},
    {"htons", kStable, {1, 3, 0}},
    {"index", kStable, {1, 1, 0}},
    {"inet_ntoa", kStable, {1, 5, 0}},
    {"inet_ntoa6", kStable, {1, 5, 0}},
    {"inet_ntop", kStable, {1, 5, 0}},
    {"json", kStable, {1, 11, 0}},
    {"llquantize", kStable, {1, 7, 0}},
    {"mod", kStable, {1, 2, 0}},
    {"ntohl", kStable, {1, 3, 0}},
    {"ntohll", kStable, {1, 3, 0}},
    {"ntohs", kStable, {1, 3, 0}},
    {"print", kStable, {1, 9, 0}},
    {"rindex", kStable, {1, 1, 0}},
    {"stddev", kStable, {1, 6, 0}},
    {"strchr", kStable, {1, 1, 0}},
    {"strrchr", kStable, {1, 1, 0}},
    {"strstr", kStable, {1, 1, 0}},
    {"strtok", kStable, {1, 1, 0}},
    {"strtoll", kStable, {1, 11, 0}},
    {"substr", kStable, {1, 1, 0}},
    {"sym", kStable, {1, 2, 0}},
    {"tolower", kStable, {1, 8, 0}},
    {"toupper", kStable, {1, 8, 0}},
    {"uaddr", kStable, {1, 2, 0}},
    {"ucaller", kStable, {1, 2, 0}},
    {"ufunc", kStable, {1, 2, 0}},
    {"umod", kStable, {1, 2, 0}},
    {"uregs", kIsa},
    {"ustackdepth", kStable, {1, 2, 0}},
    {"usym", kStable, {1, 2, 0}},
    {"vmid", kEvolving},
    {"vmname", kEvolving},
    {"vmpid", kEvolving},
    {"vmregs", kIsa, {1, 7, 0}},
};

}  // namespace

IdentifierInfo identifier_info(std::string_view name) {
  const auto at = std::ranges::lower_bound(kIdentifiers, name, {}, &IdentifierInfo::name);
  if (at != std::end(kIdentifiers) && at->name == name) return *at;
  return {name, kStable};
}

bool is_action(std::string_view name) {
  return dif::action_prototype(name) || dif::find_aggregating(name);
}

bool is_function_name(std::string_view name) {
  const auto known = dif::find_subroutine(name);
  return is_action(name) ||
         (known && static_cast<std::uint16_t>(known->id) < dif::kFirstPrivateSubroutine);
}

std::string similar_function(std::string_view name) {
  SimilarName similar(name);
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  similar.offer(text);
#define DIF_CODE_ACTION(number, text, least, most, value, bytes) similar.offer(text);
#define DIF_AGGREGATING(function, number, text, least, most, result) similar.offer(text);
#include "dif/program/actions.def"
#define DIF_SUBROUTINE(kind, id, text, result, least, most, a1, a2, a3, changes, call, reason) \
  if ((id) < dif::kFirstPrivateSubroutine && std::string_view(reason).empty()) similar.offer(text);
#include "dif/program/builtin.def"
  return similar.best();
}

void offer_variables(SimilarName& similar) {
#define DIF_BUILTIN(name, id, text, type, source) \
  if (!std::string_view(text).starts_with("__")) similar.offer(text);
#include "dif/program/builtin.def"
  for (const std::string_view array : {"args", "regs", "uregs"}) similar.offer(array);
}

std::optional<Version> parse_version(std::string_view text) {
  Version version{};
  const char* at = text.data();
  const char* const end = at + text.size();
  std::size_t parts = 0;
  while (parts < version.size()) {
    const auto parsed = std::from_chars(at, end, version[parts]);
    if (parsed.ec != std::errc() || version[parts] > 0xfff) return std::nullopt;
    ++parts;
    at = parsed.ptr;
    if (at == end) break;
    if (*at++ != '.') return std::nullopt;
  }
  return at == end && parts >= 2 ? std::optional(version) : std::nullopt;
}

void InterfacePragmas::add_attributes(const std::string& name, const Location& at,
                                      const dif::Attributes& are) {
  pending_[name].at = at;
  pending_[name].attributes = are;
}

void InterfacePragmas::add_binding(const std::string& name, const Location& at, Version since) {
  pending_[name].at = at;
  pending_[name].binding = since;
}

void InterfacePragmas::apply(Identifier& identifier) {
  const auto at = pending_.find(identifier.name);
  if (at == pending_.end()) return;
  if (at->second.attributes) identifier.attributes = *at->second.attributes;
  if (at->second.binding) bindings_[identifier.name] = *at->second.binding;
  pending_.erase(at);
}

bool InterfacePragmas::is_later(const std::string& name, const Version& version) const {
  const auto bound = bindings_.find(name);
  return bound != bindings_.end() && bound->second > version;
}

Checked<void> InterfacePragmas::check_unused() const {
  for (const auto& [name, pragma] : pending_) {
    if (pragma.at.file != 0) continue;
    return complain(
        "D_PRAGMA_UNUSED", pragma.at,
        fmt::format("unused #pragma {} {}", pragma.attributes ? "attributes" : "binding", name));
  }
  return {};
}

Identifier* IdentifierTable::find_identifier(Scope scope, const std::string& name) const {
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

std::string IdentifierTable::suggest_similar(Scope scope, const std::string& name,
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

std::optional<TypeId> IdentifierTable::find_extern_type(const std::string& name) const {
  if (const auto known = extern_arrays_.find(name); known != extern_arrays_.end()) {
    return known->second;
  }
  const Identifier* const declared = find_identifier(Scope::Global, name);
  return declared != nullptr && declared->is_extern ? std::optional(declared->type) : std::nullopt;
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

Checked<void> StabilityNotes::note(const dif::Attributes& attributes, std::string_view name,
                                   const Location& at) {
  least_ = dif::least(least_, attributes);
  if (!minimum_ || dif::at_least(attributes, *minimum_)) {
    return {};
  }
  return complain("D_ATTR_MIN", at,
                  fmt::format("attributes for {} ({}) are less than predefined minimum", name,
                              dif::to_string(attributes)));
}

Checked<void> StabilityNotes::note_function(std::string_view name, const Location& at) {
  if (identifiers_.is_hidden(name)) {
    return complain("D_FUNC_UNDEF", at, fmt::format("undefined function name: {}", name));
  }
  return note(identifier_info(name).attributes, name, at);
}

}  // namespace ringside::d
