// In this file, top to bottom: names, filtering, sites, arguments.
#include "providers/fbt.h"

#include <utility>

#include "providers/matching_functions.h"

namespace ringside::providers {
namespace {

constexpr auto kPolicy = SitePolicy::Normal;

using enum dif::Stability;
using enum dif::DependencyClass;

constexpr dif::ProviderAttributes kFbtAttributes{
    .provider = {Evolving, Evolving, Isa},
    .module = {Private, Private, Unknown},
    .function = {Private, Private, Unknown},
    .name = {Evolving, Evolving, Isa},
    .arguments = {Private, Private, Isa},
};

/// Whether a value of this type is passed as one word, so that arg<n> is the n-th parameter. A
/// parameter that is not (a structure, a floating number, __int128) has no type here, nor have
/// those after it.
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
    : EntryReturnProvider("fbt", kFbtAttributes, points),
      kernel_(kernel),
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

void FbtProvider::for_each_function(const dif::ProbeDescription& pattern,
                                    const std::function<void(std::size_t)>& visit) const {
  providers::for_each_function(kernel_.symbols(), pattern, [&](std::size_t index) {
    if (index < symbols_) visit(index);
  });
}

Result<std::vector<FbtProvider::Stand>> FbtProvider::find_stands(Place place) {
  const guest_linux::Symbol* const function = symbol_of(place);
  if (function == nullptr || !function->is_text()) {
    return fail(ErrorCode::NotFound, "there is no such function");
  }
  return place.end == End::Entry ? entry_stands(*function) : return_stands(*function);
}

Result<GuestVirt> FbtProvider::entry_of(const guest_linux::Symbol& function) const {
  if (!points().needs_ftrace_site()) return function.address;
  return entry_site(text_, function, &kernel_.symbols());
}

Result<std::vector<FbtProvider::Stand>> FbtProvider::entry_stands(
    const guest_linux::Symbol& function) {
  const GuestVirt at = TRY(entry_of(function));
  const ProbeSite site = TRY(points().examine(at, kPolicy));
  TRY(check_entered_once(text_, kernel_.symbols(), function, at));
  Stand stand{site, {}};
  stand.binding.plan = &kFunctionEntryArguments;
  return std::vector{stand};
}

Result<std::vector<FbtProvider::Stand>> FbtProvider::return_stands(
    const guest_linux::Symbol& function) {
  // A function that ftrace does not know has no entry probe, and a return alone is of no use.
  TRY(entry_of(function));
  const std::vector<ReturnSite> sites = TRY(return_sites(text_, kernel_.symbols(), function));
  if (sites.empty()) return fail(ErrorCode::Unsupported, "it never returns");
  std::vector<Stand> stands;
  stands.reserve(sites.size());
  for (const ReturnSite& site : sites) {
    Binding binding;
    binding.site = site.offset;
    binding.plan = site.has_value ? &kFunctionReturnArguments : &kFunctionExitArguments;
    binding.condition = site.condition;
    stands.push_back({TRY(points().examine(site.address, kPolicy)), binding});
  }
  return stands;
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

}  // namespace ringside::providers
