#include "dif/d/resolve/provider_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "dif/program/builtin.h"

namespace ringside::d {
namespace {

constexpr std::size_t kMaxProbeName = 128;

}  // namespace

dif::ProviderAttributes* ProviderTable::find(const std::string& name) {
  const auto at = providers_.find(name);
  return at == providers_.end() ? nullptr : &at->second;
}

Checked<void> ProviderTable::check_name(const ProviderNode& node) const {
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

Checked<void> ProviderTable::check_parameters(const Derivation& list) {
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
    const TypeId type = TRY(declared_.type_name(*parameter));
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
Checked<void> ProviderTable::check_translators(const ProviderNode::Probe& probe) {
  const std::size_t native =
      probe.native.parameters != nullptr ? probe.native.parameters->size() : 0;
  const std::size_t translated =
      probe.translated.parameters != nullptr ? probe.translated.parameters->size() : 0;
  if (translated == 0 || native == 0) return {};
  for (std::size_t i = 0; i < translated; ++i) {
    Declaration& to = *(*probe.translated.parameters)[i];
    const TypeId type = TRY(declared_.type_name(to));
    const TypeId from =
        TRY(declared_.type_name(*(*probe.native.parameters)[std::min(i, native - 1)]));
    const TypeId target = types_.is_pointer(type) ? types_.referent(type) : type;
    if (types_.same(type, from) || !types_.is_struct(target)) continue;
    if (translators_.find(target, from) == nullptr) {
      return complain("D_PROV_PRXLATOR", to.at,
                      fmt::format("translator from {} to {} is not defined: probe {}",
                                  types_.name(from), types_.name(type), *probe.name));
    }
  }
  return {};
}

Checked<void> ProviderTable::declare(const ProviderNode& node) {
  TRY(check_name(node));
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

}  // namespace ringside::d
