// The provider `dtrace`: BEGIN, END and ERROR. The fire loop fires BEGIN and END; the engine fires
// ERROR itself. Ids are always 1, 2 and 3, as users of dtrace expect.
// Fire context: no.
#pragma once

#include <array>
#include <cstdint>

#include "providers/provider.h"

namespace ringside::providers {

class BuiltinProvider final : public Provider {
 public:
  BuiltinProvider();

  std::uint32_t id_count() const override { return kProbes; }
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override;
  ProbeArguments arguments(const Probe& probe) override;
  Result<void> enable(const Probe& probe) override;

  /// Empty while nobody enabled them.
  std::optional<dif::ProbeId> begin() const { return enabled_id(0); }
  std::optional<dif::ProbeId> end() const { return enabled_id(1); }
  std::optional<dif::ProbeId> error() const { return enabled_id(2); }

 private:
  static constexpr std::uint32_t kProbes = 3;
  std::optional<dif::ProbeId> enabled_id(std::uint32_t index) const;
  Probe probe(std::uint32_t index) const;

  std::array<bool, kProbes> enabled_ = {};
};

}  // namespace ringside::providers
