// In this file, top to bottom: names and ids, filtering, publishing and refusing, sites, arguments,
// enabling.
#include "providers/fbt.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace ringside::providers {
namespace {

constexpr auto kPolicy = ProbePoints::Policy::Normal;

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
    : kernel_(kernel), points_(points), text_(text), symbols_(kernel.symbols().symbols().size()) {}

Probe FbtProvider::probe(std::size_t index, End end) const {
  const guest_linux::SymbolTable& table = kernel_.symbols();
  const guest_linux::Symbol& symbol = table.symbols()[index];
  const bool leaves = end == End::Return;
  return {{first_ + static_cast<std::uint32_t>(index * 2) + (leaves ? 1 : 0)},
          {"fbt", table.modules()[symbol.module].name, std::string(symbol.name),
           leaves ? "return" : "entry"}};
}

const guest_linux::Symbol* FbtProvider::symbol_of(dif::ProbeId id, End& end) const {
  const std::uint32_t offset = id.value - first_;  // wraps to a large value below first_
  const auto symbols = kernel_.symbols().symbols();
  if (offset / 2 >= std::min(symbols_, symbols.size())) return nullptr;
  end = offset % 2 == 0 ? End::Entry : End::Return;
  return &symbols[offset / 2];
}

bool FbtProvider::wants(const Wanted& wanted, const guest_linux::Symbol& symbol) const {
  if (!symbol.is_text() || symbol.module >= wanted.modules.size()) return false;
  if (!wanted.modules[symbol.module]) return false;
  const std::string& function = wanted.pattern->function;
  if (wanted.exact) return symbol.name == function;
  return dif::field_matches(function, symbol.name);
}

template <class Visit>
void FbtProvider::for_each_named(const dif::ProbeDescription& pattern, Visit visit) {
  Wanted wanted;
  wanted.pattern = &pattern;
  wanted.entry = dif::field_matches(pattern.name, "entry");
  wanted.leave = dif::field_matches(pattern.name, "return");
  wanted.exact = !pattern.function.empty() && !dif::is_glob(pattern.function);
  if (!wanted.entry && !wanted.leave) return;
  const guest_linux::SymbolTable& table = kernel_.symbols();
  // One look into the index answers for most names that do not exist.
  if (wanted.exact && table.find(pattern.function) == nullptr) return;
  for (const guest_linux::Module& module : table.modules()) {
    wanted.modules.push_back(dif::field_matches(pattern.module, module.name));
  }

  const auto symbols = table.symbols();
  const std::size_t count = std::min(symbols_, symbols.size());
  for (std::size_t index = 0; index < count; ++index) {
    if (!wants(wanted, symbols[index])) continue;
    if (wanted.entry) visit(index, End::Entry);
    if (wanted.leave) visit(index, End::Return);
  }
}

Result<void> FbtProvider::check(const guest_linux::Symbol& function, End end) {
  if (end == End::Entry) {
    TRY(safe_entry(function));
  } else {
    TRY(safe_returns(function));
  }
  return {};
}

Result<void> FbtProvider::provide(const dif::ProbeDescription& pattern, const Visitor& visit) {
  const auto symbols = kernel_.symbols().symbols();
  for_each_named(pattern, [&](std::size_t index, End end) {
    if (check(symbols[index], end)) visit(probe(index, end));
  });
  return {};
}

Result<void> FbtProvider::refusals(const dif::ProbeDescription& pattern,
                                   const RefusalVisitor& visit) {
  const auto symbols = kernel_.symbols().symbols();
  for_each_named(pattern, [&](std::size_t index, End end) {
    const Result<void> fine = check(symbols[index], end);
    if (!fine) visit({probe(index, end).name, fine.error().message});
  });
  return {};
}

Result<GuestVirt> FbtProvider::entry_of(const guest_linux::Symbol& function) const {
  if (!points_.needs_ftrace_site()) return function.address;
  return entry_site(text_, function, &kernel_.symbols());
}

Result<GuestVirt> FbtProvider::safe_entry(const guest_linux::Symbol& function) {
  const GuestVirt site = TRY(entry_of(function));
  TRY(points_.check(site, kPolicy));
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

Result<std::optional<Probe>> FbtProvider::by_id(dif::ProbeId id) {
  End end = End::Entry;
  const guest_linux::Symbol* symbol = symbol_of(id, end);
  if (symbol == nullptr || !symbol->is_text()) return std::optional<Probe>();
  if (!check(*symbol, end)) return std::optional<Probe>();
  return std::optional(probe((id.value - first_) / 2, end));
}

ProbeArguments FbtProvider::arguments(const Probe& probe) {
  End end = End::Entry;
  const guest_linux::Symbol* symbol = symbol_of(probe.id, end);
  if (symbol == nullptr) return {};
  const auto prototype = kernel_.prototype(*symbol);
  const TypeGraph& types = kernel_.types();
  if (!prototype || types[*prototype].kind != TypeKind::Function) return {};

  ProbeArguments arguments;
  arguments.known = true;
  if (end == End::Entry) {
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

dif::ProviderAttributes FbtProvider::attributes() const {
  using enum dif::Stability;
  using enum dif::DependencyClass;
  return {
      .provider = {Evolving, Evolving, Isa},
      .module = {Private, Private, Unknown},
      .function = {Private, Private, Unknown},
      .name = {Evolving, Evolving, Isa},
      .arguments = {Private, Private, Isa},
  };
}

Result<void> FbtProvider::enable(const Probe& probe) {
  End end = End::Entry;
  const guest_linux::Symbol* symbol = symbol_of(probe.id, end);
  if (symbol == nullptr) return fail(ErrorCode::NotFound, "the provider fbt has no such probe");
  if (!enabled_.insert(probe.id.value).second) return {};
  Binding binding;
  binding.probe = probe.id;
  if (end == End::Entry) {
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
