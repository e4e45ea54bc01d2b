// Declarations outside clauses: typedefs, types, variables that are declared before their use,
// providers, and the pragmas `attributes` and `binding`. The parser reads `#pragma D option`, and
// compile.cc reads `depends_on`. Inlines and translators are resolve.h's; C's declarators and
// structures are type_resolver.h's.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dif/d/resolve/resolve.h"

namespace ringside::d {

class Declarations {
 public:
  /// The resolver outlives it.
  explicit Declarations(Resolver& resolver)
      : types_(resolver.types()),
        identifiers_(resolver.identifiers()),
        type_resolver_(resolver.type_resolver()),
        translators_(resolver.translators()) {}

  Checked<void> declare(const Declaration& declaration);
  /// `provider NAME { probe ...; };`, an interface that publishes no probes. Checks names,
  /// parameters, and that there are translators where a probe's arguments need one.
  Checked<void> declare_provider(const ProviderNode& node);
  bool has_provider(std::string_view name) const { return providers_.contains(std::string(name)); }
  Checked<void> read_pragma(const PragmaNode& node);

 private:
  Checked<void> declare_variable(const TypeSpec& spec, const Declarator& declarator, TypeId base);
  Checked<bool> is_declared(Scope scope, const Declarator& declarator, TypeId type,
                            const std::vector<TypeId>& keys) const;

  dif::ProviderAttributes* find_provider(const std::string& name);  // null: nobody declared it
  Checked<void> check_provider_name(const ProviderNode& node) const;
  Checked<void> check_parameters(const Derivation& list);
  Checked<void> check_translators(const ProviderNode::Probe& probe);

  Checked<void> read_binding(const PragmaNode& node);
  Checked<void> read_attributes(const PragmaNode& node);
  Checked<void> read_provider_attributes(const PragmaNode& node, const dif::Attributes& attributes);
  Checked<void> apply_pragma(const PragmaNode& node);

  const Types& types_;
  IdentifierTable& identifiers_;
  TypeResolver& type_resolver_;
  const TranslatorTable& translators_;
  std::unordered_map<std::string, dif::ProviderAttributes> providers_;
};

}  // namespace ringside::d
