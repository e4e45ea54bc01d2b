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

/// An argument that a provider makes no args[] of may differ between probes.
bool ClauseProbes::agree(const ProbeSignature& a, const ProbeSignature& b) const {
  const auto same = [&](TypeId x, TypeId y) { return types_.same(x, y); };
  if (a.has_types != b.has_types || a.translated != b.translated) return false;
  if (a.translated.empty()) return std::ranges::equal(a.arguments, b.arguments, same);
  return std::ranges::all_of(a.translated, [&](const ProbeSignature::Translated& t) {
    return t.native < a.arguments.size() && t.native < b.arguments.size() &&
           same(a.arguments[t.native], b.arguments[t.native]);
  });
}

bool ClauseProbes::differ(const std::vector<dif::ProbeDescription>& probes) const {
  std::optional<ProbeSignature> common;
  for (const dif::ProbeDescription& probe : probes) {
    ProbeSignature found = environment_.signature(probe);
    if (found.matched == 0) continue;
    if (common && !agree(*common, found)) return true;
    if (!common) common = std::move(found);
  }
  return false;
}

Checked<ProbeSignature> ClauseProbes::find_signature(const Location& at) const {
  std::optional<ProbeSignature> common;
  for (const dif::ProbeDescription& probe : probes_) {
    bool is_stable = true;
    environment_.for_each_signature(probe, [&](const ProbeSignature& found) {
      is_stable = !common || agree(*common, found);
      if (!common) common = found;
      return is_stable;
    });
    if (!is_stable) {
      return complain("D_ARGS_MULTI", at,
                      fmt::format("args[ ] may not be referenced because probe description {} "
                                  "matches an unstable set of probes",
                                  probe.to_string()));
    }
  }
  if (common) return std::move(*common);
  return complain("D_ARGS_NONE", at,
                  fmt::format("args[ ] may not be referenced because {} matches no probe",
                              probes_.empty() ? "" : probes_[0].to_string()));
}

}  // namespace ringside::d
