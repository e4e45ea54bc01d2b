// A fake of ProbePoints: records what was examined, bound and forgotten, and refuses the places
// that a test names. Not linked into the product.
#pragma once

#include <array>
#include <map>
#include <set>
#include <vector>

#include "providers/context/binding.h"

namespace ringside::providers {

class RecordingPoints final : public ProbePoints {
 public:
  Result<ProbeSite> examine(GuestVirt at, SitePolicy policy) override {
    ++examined[at.raw()];
    if (refused.contains(at.raw())) return fail(ErrorCode::Unsupported, "the test says no");
    return proven(at, kInstruction, policy);
  }
  std::uint64_t generation() const override { return now; }
  Result<void> bind(const ProbeSite& site, const Binding& binding) override {
    bound.push_back({site.address(), site.policy(), binding});
    return {};
  }
  void forget(std::span<const dif::ProbeId> probes) override {
    forgotten.insert(forgotten.end(), probes.begin(), probes.end());
  }
  struct Bound {
    GuestVirt at;
    SitePolicy policy;
    Binding binding;
  };
  std::set<std::uint64_t> refused;
  std::map<std::uint64_t, unsigned> examined;
  std::uint64_t now = 0;
  std::vector<Bound> bound;
  std::vector<dif::ProbeId> forgotten;

 private:
  static constexpr std::array kInstruction{std::byte{0x90}};
};

}  // namespace ringside::providers
