#include "providers/functions/function_probes.h"

#include "providers/tracepoint/sites/function_sites.h"

namespace ringside::providers {
namespace {

constexpr auto kPolicy = SitePolicy::Normal;

}  // namespace

bool FunctionProbes::has_ftrace_site(const guest_linux::Symbol& function) const {
  return ftrace_site(text_, function, &kernel_.symbols()).has_value();
}

Result<GuestVirt> FunctionProbes::entry_of(const guest_linux::Symbol& function) {
  switch (points_.without_ftrace_site()) {
    case WithoutFtraceSite::All: return function.address;
    case WithoutFtraceSite::None: break;
    case WithoutFtraceSite::Safe:
      if (!has_ftrace_site(function)) return bare_.entry(function);
      break;
  }
  return entry_site(text_, function, &kernel_.symbols());
}

Result<std::vector<BoundSite>> FunctionProbes::entry(const guest_linux::Symbol& function) {
  const GuestVirt at = TRY(entry_of(function));
  const ProbeSite site = TRY(points_.examine(at, kPolicy));
  TRY(check_entered_once(text_, kernel_.symbols(), function, at));
  BoundSite bound{site, {}};
  bound.binding.plan = &kFunctionEntryArguments;
  return std::vector{bound};
}

Result<std::vector<BoundSite>> FunctionProbes::exits(const guest_linux::Symbol& function) {
  // A function without an entry probe: a return alone is of no use.
  TRY(entry_of(function));
  const std::vector<ReturnSite> sites = TRY(return_sites(text_, kernel_.symbols(), function));
  if (sites.empty()) return fail(ErrorCode::Unsupported, "it never returns");
  std::vector<BoundSite> bound;
  bound.reserve(sites.size());
  for (const ReturnSite& site : sites) {
    Binding binding;
    binding.site = site.offset;
    binding.plan = site.has_value ? &kFunctionReturnArguments : &kFunctionExitArguments;
    binding.condition = site.condition;
    bound.push_back({TRY(points_.examine(site.address, kPolicy)), binding, site.target});
  }
  return bound;
}

}  // namespace ringside::providers
