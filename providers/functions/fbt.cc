// In this file, top to bottom: names, filtering, sites, arguments.
#include "providers/functions/fbt.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "providers/functions/function_names.h"
#include "providers/other_kernels.h"

namespace ringside::providers {
namespace {

using enum dif::Stability;
using enum dif::DependencyClass;

constexpr dif::ProviderAttributes kFbtAttributes{
    .provider = {Evolving, Evolving, Isa},
    .module = {Private, Private, Unknown},
    .function = {Private, Private, Unknown},
    .name = {Evolving, Evolving, Isa},
    .arguments = {Private, Private, Isa},
};

/// Scripts that name another system's kernel mean this one, unless the guest has a module of that
/// name.
dif::ProbeDescription on_this_kernel(dif::ProbeDescription pattern,
                                     const guest_linux::SymbolTable& symbols) {
  if (!is_module_of_other_kernel(pattern.module)) return pattern;
  const bool is_here = std::ranges::any_of(
      symbols.modules(), [&](const auto& module) { return module.name == pattern.module; });
  if (!is_here) pattern.module = "vmlinux";
  return pattern;
}

}  // namespace

FbtProvider::FbtProvider(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points)
    : EntryReturnProvider("fbt", kFbtAttributes, points, kernel.types()),
      kernel_(kernel),
      functions_(text, kernel, points),
      tail_calls_(functions_, kernel, points),
      symbols_(kernel.symbols().symbols().size()),
      sources_(kernel.symbols()) {}

const FbtProvider::Late* FbtProvider::late(std::size_t function) const {
  const std::size_t index = function - first_late();  // wraps to a large value for the others
  return index < late_.size() ? &late_[index] : nullptr;
}

/// The symbol that the function stands at; null for an index that no function has.
const guest_linux::Symbol* FbtProvider::symbol_at(std::size_t function) const {
  const auto symbols = kernel_.symbols().symbols();
  if (function < symbols_) return &symbols[function];
  if (function < first_late()) return &symbols[sources_.functions()[function - symbols_].symbol];
  const Late* const one = late(function);
  return one != nullptr ? one->symbol : nullptr;
}

/// The name under which a function that there is has its probes.
std::string_view FbtProvider::name_of(std::size_t function) const {
  if (function >= symbols_ && function < first_late()) {
    return sources_.functions()[function - symbols_].source;
  }
  const Late* const one = late(function);
  return one != nullptr && !one->source.empty() ? one->source : symbol_at(function)->name;
}

dif::ProbeDescription FbtProvider::function_name(std::size_t function) const {
  const auto modules = kernel_.symbols().modules();
  return {{}, modules[symbol_at(function)->module].name, std::string(name_of(function)), {}};
}

/// A module that comes again has the same symbols, somewhere else.
Result<void> FbtProvider::admit(std::uint16_t module) {
  if (const auto known = late_modules_.find(module); known != late_modules_.end()) {
    forget_functions(first_late() + known->second.first, known->second.count);
    return {};
  }
  const guest_linux::SymbolTable& table = kernel_.symbols();
  const auto symbols = table.late(module);
  std::vector<Late> fresh;
  for (const guest_linux::Symbol& symbol : symbols) {
    if (symbol.is_text()) fresh.push_back({&symbol});
  }
  const SourceNames sources(table, symbols);
  for (const auto& one : sources.functions()) {
    fresh.push_back({&symbols[one.symbol], one.source});
  }
  if (late_.size() + fresh.size() > kLateFunctions) {
    return fail(ErrorCode::Limit, "there is no room for the functions of more modules");
  }
  late_modules_[module] = {late_.size(), fresh.size()};
  std::ranges::move(fresh, std::back_inserter(late_));
  return {};
}

void FbtProvider::for_each_late_function(std::uint16_t module, const dif::ProbeDescription& pattern,
                                         const std::function<void(std::size_t)>& visit) const {
  const auto known = late_modules_.find(module);
  const auto& name = kernel_.symbols().modules()[module].name;
  if (known == late_modules_.end() || !dif::field_matches(pattern.module, name)) return;
  for (std::size_t n = 0; n < known->second.count; ++n) {
    const Late& one = late_[known->second.first + n];
    const bool is_source = !one.source.empty();
    // Under the source's name only where the description does not mean the form itself.
    const bool wanted = is_source ? !pattern.function.empty() &&
                                        dif::field_matches(pattern.function, one.source) &&
                                        !dif::field_matches(pattern.function, one.symbol->name)
                                  : dif::field_matches(pattern.function, one.symbol->name);
    if (wanted) visit(first_late() + known->second.first + n);
  }
}

void FbtProvider::for_each_function(const dif::ProbeDescription& asked,
                                    const std::function<void(std::size_t)>& visit) const {
  const dif::ProbeDescription pattern = on_this_kernel(asked, kernel_.symbols());
  providers::for_each_function(kernel_.symbols(), pattern, [&](std::size_t index) {
    if (index < symbols_) visit(index);
  });
  if (pattern.function.empty()) return;
  const guest_linux::SymbolTable& table = kernel_.symbols();
  for (std::size_t n = 0; n < sources_.functions().size(); ++n) {
    const SourceNames::Function& one = sources_.functions()[n];
    const guest_linux::Symbol& symbol = table.symbols()[one.symbol];
    const bool wanted = dif::field_matches(pattern.function, one.source) &&
                        !dif::field_matches(pattern.function, symbol.name) &&
                        dif::field_matches(pattern.module, table.modules()[symbol.module].name);
    if (wanted) visit(symbols_ + n);
  }
}

Result<std::vector<BoundSite>> FbtProvider::find_sites(FunctionEnd place) {
  const guest_linux::Symbol* const function = symbol_of(place);
  if (function == nullptr || !function->is_text()) {
    return fail(ErrorCode::NotFound, "there is no such function");
  }
  // Once tracing runs, the prototypes are gone that tell whether one without it may have probes.
  if (late(place.function) != nullptr && !functions_.has_ftrace_site(*function)) {
    return fail(ErrorCode::Unsupported, "it has no ftrace site, and came while tracing ran");
  }
  return place.end == End::Entry ? functions_.entry(*function) : functions_.exits(*function);
}

void FbtProvider::complete(FunctionEnd place, std::vector<BoundSite>& sites) {
  if (place.end == End::Return) tail_calls_.follow(*symbol_of(place), sites);
}

ProbeArguments FbtProvider::arguments(const Probe& probe) {
  const auto place = place_of(probe.id);
  const guest_linux::Symbol* const symbol = place ? symbol_of(*place) : nullptr;
  if (symbol == nullptr) return {};
  const FunctionForm form = function_form(symbol->name);
  if (!form.source.empty()) {
    ProbeArguments unknown;
    unknown.why_unknown = describe_form(symbol->name, form);
    return unknown;
  }
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

std::string FbtProvider::detail(const Probe& probe) {
  const auto place = place_of(probe.id);
  const guest_linux::Symbol* const symbol = place ? symbol_of(*place) : nullptr;
  if (symbol == nullptr) return {};
  const FunctionForm form = function_form(symbol->name);
  std::string text = form.source.empty() ? std::string() : describe_form(symbol->name, form);
  if (!functions_.has_ftrace_site(*symbol)) {
    text += fmt::format("{}no ftrace site: {}", text.empty() ? "" : "; ",
                        place->end == End::Entry ? "at its first instruction" : "at its ways out");
  }
  if (place->end == End::Entry) return text;
  const auto exits = functions_.exits(*symbol);
  const std::string jumps = exits ? tail_calls_.describe(*symbol, *exits) : std::string();
  return text + (text.empty() || jumps.empty() ? "" : "; ") + jumps;
}

}  // namespace ringside::providers
