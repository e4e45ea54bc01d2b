#include "dif/d/resolve/pragma_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::d {
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

Checked<void> PragmaReader::read(const PragmaNode& node) {
  return node.directive == "binding" ? read_binding(node) : read_attributes(node);
}

Checked<void> PragmaReader::read_binding(const PragmaNode& node) {
  const std::vector<std::string>& words = node.words;
  const std::string_view version = words[0];
  const bool quoted = version.size() >= 2 && version.front() == '"' && version.back() == '"';
  if (words.size() != 2 || !quoted) {
    return complain("D_PRAGMA_MALFORM", node.at, "malformed #pragma D binding \"version\" name");
  }
  const auto parsed = parse_version(version.substr(1, version.size() - 2));
  if (!parsed) return invalid(node, fmt::format("{} is not a version", words[0]));
  identifiers_.pragmas().add_binding(words[1], node.at, *parsed);
  return settle(node);
}

Checked<void> PragmaReader::read_attributes(const PragmaNode& node) {
  const std::vector<std::string>& words = node.words;
  const auto attributes = dif::parse_attributes(words[0]);
  if (!attributes) return invalid(node, fmt::format("{} are not attributes", words[0]));
  if (words.size() == 4 && words[1] == "provider") return read_provider(node, *attributes);
  if (words.size() != 2) {
    return complain("D_PRAGMA_MALFORM", node.at, "malformed #pragma D attributes");
  }
  identifiers_.pragmas().add_attributes(words[1], node.at, *attributes);
  return settle(node);
}

Checked<void> PragmaReader::read_provider(const PragmaNode& node,
                                          const dif::Attributes& attributes) {
  const std::string &name = node.words[2], &part = node.words[3];
  dif::ProviderAttributes* const provider = providers_.find(name);
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
Checked<void> PragmaReader::settle(const PragmaNode& node) {
  const std::string& name = node.words[1];
  InterfacePragmas& pragmas = identifiers_.pragmas();
  Identifier* const known = identifiers_.find(Scope::Global, name);
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
  if (declared_.find(name)) pragmas.drop(name);
  return {};
}

}  // namespace ringside::d
