// In this file, top to bottom: names, filtering, checking, sites, arguments, enabling.
#include "providers/fbt.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace ringside::providers {
namespace {

constexpr auto kPolicy = ProbePoints::Policy::Normal;

using enum dif::Stability;
using enum dif::DependencyClass;

constexpr dif::ProviderAttributes kAttributes{
    .provider = {Evolving, Evolving, Isa},
    .module = {Private, Private, Unknown},
    .function = {Private, Private, Unknown},
    .name = {Evolving, Evolving, Isa},
    .arguments = {Private, Private, Isa},
};

/// Whether a value of this type is passed as one word, so that arg<n> is the n-th parameter. What
/// is not (a structure, a floating number, __int128) has no type here, nor have those behind it.
bool takes_one_word(const TypeGraph& types, TypeId type) {
  const Type& plain = types[types.resolve(type)];
  switch (plain.kind) {
    case TypeKind::Integer:
    case TypeKind::Enum: return plain.size <= sizeof(std::uint64_t);
    case TypeKind::Pointer: return true;
    default: return false;
  }
}

}  // namespace

FbtProvider::FbtProvider(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points)
    : EntryReturnProvider("fbt", kAttributes),
      kernel_(kernel),
      points_(points),
      text_(text),
      symbols_(kernel.symbols().symbols().size()) {}

dif::ProbeDescription FbtProvider::function_name(std::size_t function) const {
  const guest_linux::SymbolTable& table = kernel_.symbols();
  const guest_linux::Symbol& symbol = table.symbols()[function];
  return {{}, table.modules()[symbol.module].name, std::string(symbol.name), {}};
}

const guest_linux::Symbol* FbtProvider::symbol_of(Place place) const {
  const auto symbols = kernel_.symbols().symbols();
  return place.function < symbols.size() ? &symbols[place.function] : nullptr;
}

bool FbtProvider::wants(const Wanted& wanted, const guest_linux::Symbol& symbol) const {
  if (!symbol.is_text() || symbol.module >= wanted.modules.size()) return false;
  if (!wanted.modules[symbol.module]) return false;
  const std::string& function = wanted.pattern->function;
  if (wanted.exact) return symbol.name == function;
  return dif::field_matches(function, symbol.name);
}

void FbtProvider::for_each_function(const dif::ProbeDescription& pattern,
                                    const std::function<void(std::size_t)>& visit) const {
  Wanted wanted;
  wanted.pattern = &pattern;
  wanted.exact = !pattern.function.empty() && !dif::is_glob(pattern.function);
  const guest_linux::SymbolTable& table = kernel_.symbols();
  // One look into the index answers for most names that do not exist.
  if (wanted.exact && table.find(pattern.function) == nullptr) return;
  for (const guest_linux::Module& module : table.modules()) {
    wanted.modules.push_back(dif::field_matches(pattern.module, module.name));
  }

  const auto symbols = table.symbols();
  const std::size_t count = std::min(symbols_, symbols.size());
  for (std::size_t index = 0; index < count; ++index) {
    if (wants(wanted, symbols[index])) visit(index);
  }
}

Result<void> FbtProvider::check(Place place) {
  const guest_linux::Symbol* const function = symbol_of(place);
  if (function == nullptr || !function->is_text()) {
    return fail(ErrorCode::NotFound, "there is no such function");
  }
  if (place.end == End::Entry) {
    TRY(safe_entry(*function));
  } else {
    TRY(safe_returns(*function));
  }
  return {};
}

Result<GuestVirt> FbtProvider::entry_of(const guest_linux::Symbol& function) const {
  if (!points_.needs_ftrace_site()) return function.address;
  return entry_site(text_, function, &kernel_.symbols());
}

Result<GuestVirt> FbtProvider::safe_entry(const guest_linux::Symbol& function) {
  const GuestVirt site = TRY(entry_of(function));
  TRY(points_.check(site, kPolicy));
  if (entered_once_.contains(function.address.raw())) return site;
  TRY(check_entered_once(text_, kernel_.symbols(), function, site));
  entered_once_.insert(function.address.raw());
  return site;
}

Result<std::vector<ReturnSite>> FbtProvider::safe_returns(const guest_linux::Symbol& function) {
  const auto known = returns_.find(function.address.raw());
  if (known != returns_.end()) return known->second;
  // A function that ftrace does not know has no entry probe, and a return alone is of no use.
  TRY(entry_of(function));
  std::vector<ReturnSite> sites = TRY(return_sites(text_, kernel_.symbols(), function));
  if (sites.empty()) return fail(ErrorCode::Unsupported, "it never returns");
  for (const ReturnSite& site : sites) TRY(points_.check(site.address, kPolicy));
  returns_.emplace(function.address.raw(), sites);
  return sites;
}

ProbeArguments FbtProvider::arguments(const Probe& probe) {
  const auto place = place_of(probe.id);
  const guest_linux::Symbol* const symbol = place ? symbol_of(*place) : nullptr;
  if (symbol == nullptr) return {};
  const auto prototype = kernel_.prototype(*symbol);
  const TypeGraph& types = kernel_.types();
  if (!prototype || types[*prototype].kind != TypeKind::Function) return {};

  ProbeArguments arguments;
  arguments.known = true;
  if (place->end == End::Entry) {
    for (const Parameter& parameter : types.parameters(*prototype)) {
      if (!takes_one_word(types, parameter.type)) break;
      arguments.types.push_back(parameter.type);
      arguments.names.emplace_back(parameter.name);
    }
    return arguments;
  }
  const auto offset = types.find("int");
  if (!offset) return {};
  arguments.types.push_back(*offset);
  arguments.names.emplace_back("offset");
  const TypeId value = types[*prototype].target;
  if (takes_one_word(types, value)) {
    arguments.types.push_back(value);
    arguments.names.emplace_back("value");
  }
  return arguments;
}

Result<void> FbtProvider::enable(const Probe& probe) {
  const auto place = place_of(probe.id);
  const guest_linux::Symbol* const symbol = place ? symbol_of(*place) : nullptr;
  if (symbol == nullptr) return no_such_probe();
  if (!note_enabled(probe.id)) return {};
  Binding binding;
  binding.probe = probe.id;
  if (place->end == End::Entry) {
    const GuestVirt site = TRY(safe_entry(*symbol));
    return points_.bind(site, kPolicy, binding);
  }
  binding.kind = BindingKind::FunctionReturn;
  const std::vector<ReturnSite> sites = TRY(safe_returns(*symbol));
  for (const ReturnSite& site : sites) {
    binding.offset = site.offset;
    binding.has_value = site.has_value;
    binding.condition = site.condition;
    TRY(points_.bind(site.address, kPolicy, binding));
  }
  return {};
}

}  // namespace ringside::providers
