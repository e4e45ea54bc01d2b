#include "providers/functions/tail_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace ringside::providers {
namespace {

// Of one function. What leads through more is a place that half of the kernel jumps to.
constexpr std::size_t kMostFunctions = 32, kMostEnds = 256;
constexpr std::size_t kMostKept = 4096;  // functions whose ways out are kept
constexpr std::size_t kMostDescribed = 8;

}  // namespace

/// Null: no probe can stand at all of them, or it is no function.
const std::vector<BoundSite>* TailCalls::exits_of(GuestVirt function) {
  if (generation_ != points_.generation() || exits_.size() >= kMostKept) exits_.clear();
  generation_ = points_.generation();
  const auto [at, is_new] = exits_.try_emplace(function.raw());
  if (is_new) {
    const auto* const symbol = kernel_.symbols().at(function);
    const bool is_start = symbol != nullptr && symbol->is_text() && symbol->address == function;
    auto found = is_start ? functions_.exits(*symbol) : fail(ErrorCode::NotFound, "no function");
    if (found) at->second = std::move(*found);
  }
  return at->second.empty() ? nullptr : &at->second;
}

bool TailCalls::returns_nothing(const guest_linux::Symbol& function) {
  const TypeGraph& types = kernel_.types();
  const auto prototype = kernel_.prototype(function);
  if (prototype && types[*prototype].kind == TypeKind::Function) {
    const TypeId result = types.resolve(types[*prototype].target);
    if (types[result].kind == TypeKind::Void) return_nothing_.insert(function.address);
  }
  return return_nothing_.contains(function.address);
}

bool TailCalls::is_exported(GuestVirt function) const {
  const guest_linux::SymbolTable& symbols = kernel_.symbols();
  for (const guest_linux::Symbol& name : symbols.all_at(function)) {
    const auto& module = symbols.modules()[name.module].name;
    if (symbols.find(fmt::format("__ksymtab_{}", name.name), module) != nullptr) return true;
  }
  return false;
}

/// Adds all that the jump leads to. False, and adds nothing, where it cannot be followed.
bool TailCalls::extend(Route& route, const BoundSite& jump) {
  if (!jump.jumps_to) return false;
  if (!route.has_value && is_exported(*jump.jumps_to)) return false;
  if (route.functions.contains(*jump.jumps_to)) return true;
  const auto* const known = exits_of(*jump.jumps_to);
  const bool fits = known != nullptr && route.functions.size() < kMostFunctions &&
                    route.ends.size() + known->size() <= kMostEnds;
  if (!fits) return false;
  route.functions.insert(*jump.jumps_to);
  const std::vector<BoundSite> exits = *known;  // what follows may forget them
  for (const BoundSite& exit : exits) {
    const bool has_value = exit.binding.plan != &kFunctionExitArguments;
    if (!has_value && extend(route, exit)) continue;
    BoundSite& end = route.ends.emplace_back(exit);
    end.binding.role = has_value ? Role::Ends : Role::EndsUnknown;
  }
  return true;
}

void TailCalls::follow(const guest_linux::Symbol& function, std::vector<BoundSite>& sites) {
  Route whole;
  whole.has_value = !returns_nothing(function);
  std::vector<BoundSite*> waiting;
  for (BoundSite& site : sites) {
    if (extend(whole, site)) waiting.push_back(&site);
  }
  if (waiting.empty()) return;
  const TailCall call{function.address, {whole.functions.begin(), whole.functions.end()}};
  const TailCall& kept = *calls_.insert(call).first;
  for (BoundSite* const site : waiting) {
    site->binding.role = Role::Waits;
    site->binding.plan = &kFunctionReturnArguments;
    site->binding.tail_call = &kept;
  }
  sites.insert(sites.end(), whole.ends.begin(), whole.ends.end());
}

std::string TailCalls::describe(const guest_linux::Symbol& function,
                                const std::vector<BoundSite>& sites) {
  std::vector<BoundSite> followed = sites;
  follow(function, followed);
  std::vector<std::string> jumps;
  for (std::size_t n = 0; n < sites.size(); ++n) {
    const Binding& binding = followed[n].binding;
    const bool waits = binding.role == Role::Waits;
    if (!waits && binding.plan != &kFunctionExitArguments) continue;
    const auto to = sites[n].jumps_to;
    const std::string where = to ? kernel_.symbols().describe(*to) : "an address in a register";
    jumps.push_back(fmt::format("jumps to {} at +{:#x}, fires {}", where, binding.site,
                                waits ? "where that returns" : "there, where arg1 is not known"));
  }
  if (jumps.size() > kMostDescribed) {
    const std::size_t more = jumps.size() - kMostDescribed;
    jumps.resize(kMostDescribed);
    jumps.push_back(fmt::format("and {} more such jumps", more));
  }
  return fmt::format("{}", fmt::join(jumps, "; "));
}

}  // namespace ringside::providers
