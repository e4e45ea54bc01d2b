// `provider NAME { probe ...; };`: interfaces that a program declares. They publish no probes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "dif/d/resolve/translator_table.h"
#include "dif/d/resolve/type_resolver.h"
#include "dif/program/stability.h"

namespace ringside::d {

class ProviderTable {
 public:
  ProviderTable(const Types& types, TypeResolver& declared, const TranslatorTable& translators)
      : types_(types), declared_(declared), translators_(translators) {}

  /// Checks names, parameters, and that there are translators where a probe's arguments need one.
  Checked<void> declare(const ProviderNode& node);
  bool has(std::string_view name) const { return providers_.contains(std::string(name)); }
  /// Null when nobody declared it.
  dif::ProviderAttributes* find(const std::string& name);

 private:
  Checked<void> check_name(const ProviderNode& node) const;
  Checked<void> check_parameters(const Derivation& list);
  Checked<void> check_translators(const ProviderNode::Probe& probe);

  const Types& types_;
  TypeResolver& declared_;
  const TranslatorTable& translators_;
  std::unordered_map<std::string, dif::ProviderAttributes> providers_;
};

}  // namespace ringside::d
