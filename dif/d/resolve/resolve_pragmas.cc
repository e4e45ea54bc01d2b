// What programs say about interfaces: provider declarations, #pragma D attributes and binding, and
// what the names that a clause uses promise together.
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/resolve/resolve.h"

namespace ringside::d {
namespace {

constexpr std::size_t kMaxProbeName = 128;

}  // namespace

Checked<void> Resolver::note(const dif::Attributes& attributes, std::string_view name,
                             const Location& at) {
  attributes_ = dif::least(attributes_, attributes);
  if (!options_.attribute_minimum || dif::at_least(attributes, *options_.attribute_minimum)) {
    return {};
  }
  return complain("D_ATTR_MIN", at,
                  fmt::format("attributes for {} ({}) are less than predefined minimum", name,
                              dif::to_string(attributes)));
}

Checked<void> Resolver::note_function(std::string_view name, const Location& at) {
  if (is_hidden(name)) {
    return complain("D_FUNC_UNDEF", at, fmt::format("undefined function name: {}", name));
  }
  return note(identifier_info(name).attributes, name, at);
}

bool Resolver::is_hidden(std::string_view name) const {
  return options_.version && identifier_info(name).since > *options_.version;
}

Checked<void> Resolver::check_parameters(const Derivation& list) {
  if (list.variadic && list.parameters != nullptr) {
    return complain("D_DECL_PROTO_VARARGS", list.parameters->front()->at,
                    "probe prototype may not use a variable-length argument list");
  }
  if (list.parameters == nullptr) return {};
  for (Declaration* parameter : *list.parameters) {
    if (parameter->spec->storage != Storage::None) {
      return complain("D_DECL_PARMCLASS", parameter->at,
                      "inappropriate storage class for a probe's parameter");
    }
    const TypeId type = TRY(type_name(*parameter));
    const bool only = list.parameters->size() == 1;
    if (types_.is_void(type) && !only) {
      return complain("D_DECL_PROTO_VOID", parameter->at, "void must be the sole parameter");
    }
    if (!types_.is_void(type) && !types_.value_type(types_.decay(type))) {
      return complain("D_DECL_PROTO_TYPE", parameter->at,
                      fmt::format("probe prototype may not use type {}", types_.name(type)));
    }
  }
  if (list.parameters->size() > std::size_t{dif::kMaxProbeArguments} * 3) {
    return complain("D_PROV_PRARGLEN", list.parameters->front()->at,
                    "probe has too many arguments");
  }
  return {};
}

Checked<void> Resolver::declare_provider(const ProviderNode& node) {
  const std::string& name = *node.name;
  const bool ends_in_digit = name.back() >= '0' && name.back() <= '9';
  if (ends_in_digit || name.size() >= kMaxProbeName || name.starts_with("_")) {
    return complain("D_PROV_BADNAME", node.at,
                    fmt::format("provider name may not {}: {}",
                                ends_in_digit           ? "end with a digit"
                                : name.starts_with("_") ? "begin with an underscore"
                                                        : "be that long",
                                name));
  }
  if (providers_.contains(name)) {
    return complain("D_PROV_INCOMPAT", node.at,
                    fmt::format("provider is already declared: {}", name));
  }
  std::unordered_set<std::string_view> names;
  for (const ProviderNode::Probe& probe : node.probes) {
    if (!names.insert(*probe.name).second) {
      return complain("D_PROV_PRDUP", probe.at,
                      fmt::format("probe redeclared: {}:::{}", name, *probe.name));
    }
    TRY(check_parameters(probe.native));
    if (!probe.has_translated) continue;
    TRY(check_parameters(probe.translated));
    const std::size_t native =
        probe.native.parameters != nullptr ? probe.native.parameters->size() : 0;
    const std::size_t translated =
        probe.translated.parameters != nullptr ? probe.translated.parameters->size() : 0;
    if (translated == 0 || native == 0) continue;
    for (std::size_t i = 0; i < translated; ++i) {
      Declaration& to = *(*probe.translated.parameters)[i];
      const TypeId type = TRY(type_name(to));
      const TypeId from = TRY(type_name(*(*probe.native.parameters)[std::min(i, native - 1)]));
      const TypeId target = types_.is_pointer(type) ? types_.referent(type) : type;
      if (types_.same(type, from) || !types_.is_struct(target)) continue;
      if (find_translator(target, from) == nullptr) {
        return complain("D_PROV_PRXLATOR", to.at,
                        fmt::format("translator from {} to {} is not defined: probe {}",
                                    types_.name(from), types_.name(type), *probe.name));
      }
    }
  }
  providers_.emplace(name, dif::ProviderAttributes{});
  return {};
}

Checked<void> Resolver::pragma(const PragmaNode& node) {
  const std::vector<std::string>& words = node.words;
  const auto invalid = [&](const std::string& what) {
    return complain("D_PRAGMA_INVAL", node.at,
                    fmt::format("invalid #pragma D {}: {}", node.directive, what));
  };
  if (node.directive == "binding") {
    const std::string_view version = words[0];
    const bool quoted = version.size() >= 2 && version.front() == '"' && version.back() == '"';
    if (words.size() != 2 || !quoted) {
      return complain("D_PRAGMA_MALFORM", node.at, "malformed #pragma D binding \"version\" name");
    }
    const auto parsed = parse_version(version.substr(1, version.size() - 2));
    if (!parsed) return invalid(fmt::format("{} is not a version", words[0]));
    pending_[words[1]].at = node.at;
    pending_[words[1]].binding = *parsed;
  } else {
    const auto attributes = dif::parse_attributes(words[0]);
    if (!attributes) return invalid(fmt::format("{} are not attributes", words[0]));
    if (words.size() == 4 && words[1] == "provider") {
      const auto provider = providers_.find(words[2]);
      if (provider == providers_.end()) {
        return invalid(fmt::format("provider {} is not declared", words[2]));
      }
      if (words[3] == "provider")
        provider->second.provider = *attributes;
      else if (words[3] == "module")
        provider->second.module = *attributes;
      else if (words[3] == "function")
        provider->second.function = *attributes;
      else if (words[3] == "probe" || words[3] == "name")
        provider->second.name = *attributes;
      else if (words[3] == "args")
        provider->second.arguments = *attributes;
      else
        return invalid(fmt::format("{} is not a part of a provider", words[3]));
      return {};
    }
    if (words.size() != 2) {
      return complain("D_PRAGMA_MALFORM", node.at, "malformed #pragma D attributes");
    }
    pending_[words[1]].at = node.at;
    pending_[words[1]].attributes = *attributes;
  }
  Symbol* const known = find(Scope::Global, words[1]);
  const bool own = known != nullptr &&
                   (known->kind == Symbol::Kind::Variable || known->kind == Symbol::Kind::Inline);
  if (own) apply_pragmas(*known);
  if (!own && is_of_d(words[1])) {
    pending_.erase(words[1]);
    if (node.at.file != 0) return {};
    return complain("D_PRAGMA_SCOPE", node.at,
                    fmt::format("#pragma {} cannot modify entity defined outside program scope",
                                node.directive));
  }
  // Types can be named as well; what they promise stays.
  if (typedefs_.contains(words[1]) || types_.graph().find(words[1])) pending_.erase(words[1]);
  return {};
}

void Resolver::apply_pragmas(Symbol& symbol) {
  if (pending_.empty() || symbol.scope != Scope::Global) return;
  const auto at = pending_.find(symbol.name);
  if (at == pending_.end()) return;
  if (at->second.attributes) symbol.attributes = *at->second.attributes;
  if (at->second.binding) bindings_[symbol.name] = *at->second.binding;
  pending_.erase(at);
}

Checked<void> Resolver::check_unused_pragmas() const {
  for (const auto& [name, pragma] : pending_) {
    if (pragma.at.file != 0) continue;
    return complain(
        "D_PRAGMA_UNUSED", pragma.at,
        fmt::format("unused #pragma {} {}", pragma.attributes ? "attributes" : "binding", name));
  }
  return {};
}

}  // namespace ringside::d
