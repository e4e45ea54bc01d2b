#include "dif/d/resolve/clause_probes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::d {

void ClauseProbes::enter(std::vector<dif::ProbeDescription> probes) {
  probes_ = std::move(probes);
  known_.reset();
}

Checked<ProbeSignature> ClauseProbes::signature(const Location& at) {
  if (!known_) known_ = find_signature(at);
  return *known_;
}

Checked<ProbeSignature> ClauseProbes::find_signature(const Location& at) const {
  std::optional<ProbeSignature> common;
  for (const dif::ProbeDescription& probe : probes_) {
    ProbeSignature found = environment_.signature(probe);
    if (found.matched == 0) continue;
    const bool agrees =
        !common ||
        (common->has_types == found.has_types && common->translated == found.translated &&
         std::ranges::equal(common->arguments, found.arguments,
                            [&](TypeId a, TypeId b) { return types_.same(a, b); }));
    if (!agrees) {
      return complain("D_ARGS_MULTI", at,
                      fmt::format("args[ ] may not be referenced because probe description {} "
                                  "matches an unstable set of probes",
                                  probe.to_string()));
    }
    if (!common) common = std::move(found);
  }
  if (common) return std::move(*common);
  return complain("D_ARGS_NONE", at,
                  fmt::format("args[ ] may not be referenced because {} matches no probe",
                              probes_.empty() ? "" : probes_[0].to_string()));
}

}  // namespace ringside::d
