// In this file: typedefs, types and variables; providers; pragmas.
#include "dif/d/resolve/declarations.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace ringside::d {

Checked<void> Declarations::declare(const Declaration& declaration) {
  TypeSpec& spec = *declaration.spec;
  const TypeId base = TRY(type_resolver_.resolve_specifiers(spec));
  const bool names_type = spec.name != nullptr || spec.base == TypeSpec::Base::Enum;
  const bool tagged = spec.base == TypeSpec::Base::Struct || spec.base == TypeSpec::Base::Union ||
                      spec.base == TypeSpec::Base::Enum;
  if (declaration.declarators.empty() && (!tagged || !names_type)) {
    return complain("D_DECL_USELESS", declaration.at, "useless declaration");
  }
  for (const Declarator* declarator : declaration.declarators) {
    if (spec.storage == Storage::Typedef) {
      TRY(type_resolver_.declare_typedef(*declarator, base));
    } else {
      TRY(declare_variable(spec, *declarator, base));
    }
  }
  return {};
}

/// Whether the variable is there already, as it is declared now. D_DECL_IDRED for another one.
Checked<bool> Declarations::is_declared(Scope scope, const Declarator& declarator, TypeId type,
                                        const std::vector<TypeId>& keys) const {
  const std::string& name = *declarator.name;
  const Identifier* known = identifiers_.find_identifier(scope, name);
  const bool taken = scope == Scope::Global &&
                     (identifiers_.is_of_d(name) || type_resolver_.find_enumerator(name) ||
                      type_resolver_.is_typedef(name));
  if (known == nullptr && !taken) return false;
  const auto same_type = [&](TypeId a, TypeId b) { return types_.same(a, b); };
  const bool same = known != nullptr && known->kind == Identifier::Kind::Variable &&
                    types_.same(known->type, type) &&
                    std::ranges::equal(known->keys, keys, same_type);
  if (same) return true;
  return complain("D_DECL_IDRED", declarator.at, fmt::format("identifier redeclared: {}", name));
}

Checked<void> Declarations::declare_variable(const TypeSpec& spec, const Declarator& declarator,
                                             TypeId base) {
  if (spec.storage == Storage::Auto || spec.storage == Storage::Static ||
      spec.storage == Storage::Register) {
    return complain("D_DECL_BADCLASS", declarator.at,
                    "specified storage class not appropriate in D");
  }
  const std::string& name = *declarator.name;
  const bool is_extern = spec.storage == Storage::Extern;
  const TypeId type = TRY(type_resolver_.apply_declarator(
      base, declarator, true,
      is_extern ? TypeResolver::Unsized::Allowed : TypeResolver::Unsized::Refused));
  if (types_.is_function(type)) return {};  // a prototype: nothing in D calls it
  if (types_.is_array(type) && types_.at(type).count == 0) {
    identifiers_.note_extern_array(name, type);
    return {};
  }
  if (types_.is_void(type)) {
    return complain("D_DECL_VOIDOBJ", declarator.at,
                    fmt::format("cannot have void variable: {}", name));
  }
  const Scope scope = spec.storage == Storage::Thread   ? Scope::Thread
                      : spec.storage == Storage::Clause ? Scope::Clause
                                                        : Scope::Global;
  std::vector<TypeId> keys;
  const bool associative = !declarator.derivations.empty() &&
                           declarator.derivations.front().kind == Derivation::Kind::Keys;
  if (associative) {
    if (scope == Scope::Clause) {
      return complain("D_DECL_LOCASSC", declarator.at,
                      fmt::format("cannot define associative array as local variable: {}", name));
    }
    keys = TRY(type_resolver_.resolve_key_types(declarator));
  }
  if (TRY(is_declared(scope, declarator, type, keys))) return {};
  if (!types_.value_type(type) && !is_extern) {
    return complain("D_DECL_INCOMPLETE", declarator.at,
                    fmt::format("incomplete struct/union/enum {}: {}", types_.name(type), name));
  }
  Identifier* identifier = TRY(identifiers_.add_variable(scope, name, declarator.at));
  identifier->type = type;
  identifier->is_associative = associative;
  identifier->keys = std::move(keys);
  identifier->is_extern = is_extern;
  return {};
}

namespace {

constexpr std::size_t kMaxProbeName = 128;

}  // namespace

dif::ProviderAttributes* Declarations::find_provider(const std::string& name) {
  const auto at = providers_.find(name);
  return at == providers_.end() ? nullptr : &at->second;
}

Checked<void> Declarations::check_provider_name(const ProviderNode& node) const {
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
  return {};
}

Checked<void> Declarations::check_parameters(const Derivation& list) {
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
    const TypeId type = TRY(type_resolver_.resolve_type_name(*parameter));
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

/// Each argument as it is passed can be translated to how a program sees it.
Checked<void> Declarations::check_translators(const ProviderNode::Probe& probe) {
  const std::size_t native =
      probe.native.parameters != nullptr ? probe.native.parameters->size() : 0;
  const std::size_t translated =
      probe.translated.parameters != nullptr ? probe.translated.parameters->size() : 0;
  if (translated == 0 || native == 0) return {};
  for (std::size_t i = 0; i < translated; ++i) {
    Declaration& to = *(*probe.translated.parameters)[i];
    const TypeId type = TRY(type_resolver_.resolve_type_name(to));
    const TypeId from =
        TRY(type_resolver_.resolve_type_name(*(*probe.native.parameters)[std::min(i, native - 1)]));
    const TypeId target = types_.is_pointer(type) ? types_.referent(type) : type;
    if (types_.same(type, from) || !types_.is_struct(target)) continue;
    if (translators_.find_translator(target, from) == nullptr) {
      return complain("D_PROV_PRXLATOR", to.at,
                      fmt::format("translator from {} to {} is not defined: probe {}",
                                  types_.name(from), types_.name(type), *probe.name));
    }
  }
  return {};
}

Checked<void> Declarations::declare_provider(const ProviderNode& node) {
  const auto is_defined = [](const ProviderNode::Probe& probe) {
    return probe.definition != nullptr;
  };
  const auto defined = std::ranges::find_if(node.probes, is_defined);
  if (defined != node.probes.end()) {
    if (node.at.file != 0) return {};  // the tracer publishes it (dif/d/probe_definitions.h)
    return complain("D_PROV_PLACE", defined->at,
                    fmt::format("only libraries define probes: move provider {} to a file of a "
                                "folder that -L names",
                                *node.name));
  }
  TRY(check_provider_name(node));
  std::unordered_set<std::string_view> names;
  for (const ProviderNode::Probe& probe : node.probes) {
    if (!names.insert(*probe.name).second) {
      return complain("D_PROV_PRDUP", probe.at,
                      fmt::format("probe redeclared: {}:::{}", *node.name, *probe.name));
    }
    TRY(check_parameters(probe.native));
    if (!probe.has_translated) continue;
    TRY(check_parameters(probe.translated));
    TRY(check_translators(probe));
  }
  providers_.emplace(*node.name, dif::ProviderAttributes{});
  return {};
}

namespace {

tl::unexpected<Diagnostic> invalid(const PragmaNode& node, std::string_view what) {
  return complain("D_PRAGMA_INVAL", node.at,
                  fmt::format("invalid #pragma D {}: {}", node.directive, what));
}

struct Part {
  std::string_view name;
  dif::Attributes dif::ProviderAttributes::*attributes;
};
constexpr Part kParts[] = {
    {"provider", &dif::ProviderAttributes::provider}, {"module", &dif::ProviderAttributes::module},
    {"function", &dif::ProviderAttributes::function}, {"probe", &dif::ProviderAttributes::name},
    {"name", &dif::ProviderAttributes::name},         {"args", &dif::ProviderAttributes::arguments},
};

}  // namespace

Checked<void> Declarations::read_pragma(const PragmaNode& node) {
  return node.directive == "binding" ? read_binding(node) : read_attributes(node);
}

Checked<void> Declarations::read_binding(const PragmaNode& node) {
  const std::vector<std::string>& words = node.words;
  const std::string_view version = words[0];
  const bool quoted = version.size() >= 2 && version.front() == '"' && version.back() == '"';
  if (words.size() != 2 || !quoted) {
    return complain("D_PRAGMA_MALFORM", node.at, "malformed #pragma D binding \"version\" name");
  }
  const auto parsed = parse_version(version.substr(1, version.size() - 2));
  if (!parsed) return invalid(node, fmt::format("{} is not a version", words[0]));
  identifiers_.pragmas().add_binding(words[1], node.at, *parsed);
  return apply_pragma(node);
}

Checked<void> Declarations::read_attributes(const PragmaNode& node) {
  const std::vector<std::string>& words = node.words;
  const auto attributes = dif::parse_attributes(words[0]);
  if (!attributes) return invalid(node, fmt::format("{} are not attributes", words[0]));
  if (words.size() == 4 && words[1] == "provider")
    return read_provider_attributes(node, *attributes);
  if (words.size() != 2) {
    return complain("D_PRAGMA_MALFORM", node.at, "malformed #pragma D attributes");
  }
  identifiers_.pragmas().add_attributes(words[1], node.at, *attributes);
  return apply_pragma(node);
}

Checked<void> Declarations::read_provider_attributes(const PragmaNode& node,
                                                     const dif::Attributes& attributes) {
  const std::string &name = node.words[2], &part = node.words[3];
  dif::ProviderAttributes* const provider = find_provider(name);
  if (provider == nullptr) {
    return invalid(node, fmt::format("provider {} is not declared", name));
  }
  const auto* const row = std::ranges::find(kParts, part, &Part::name);
  if (row == std::end(kParts)) {
    return invalid(node, fmt::format("{} is not a part of a provider", part));
  }
  provider->*row->attributes = attributes;
  return {};
}

/// Applies it to a name that is known, and forgets it for one that it cannot change.
Checked<void> Declarations::apply_pragma(const PragmaNode& node) {
  const std::string& name = node.words[1];
  InterfacePragmas& pragmas = identifiers_.pragmas();
  Identifier* const known = identifiers_.find_identifier(Scope::Global, name);
  const bool own = known != nullptr && (known->kind == Identifier::Kind::Variable ||
                                        known->kind == Identifier::Kind::Inline);
  if (own) pragmas.apply(*known);
  if (!own && identifiers_.is_of_d(name)) {
    pragmas.drop(name);
    if (node.at.file != 0) return {};
    return complain("D_PRAGMA_SCOPE", node.at,
                    fmt::format("#pragma {} cannot modify entity defined outside program scope",
                                node.directive));
  }
  // Types can be named as well; their attributes stay.
  if (type_resolver_.find_type(name)) pragmas.drop(name);
  return {};
}

}  // namespace ringside::d
