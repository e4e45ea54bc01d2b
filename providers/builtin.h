// The provider `dtrace`: BEGIN, END and ERROR. The fire loop fires BEGIN and END; the engine fires
// ERROR itself. Ids are always 1, 2 and 3, as users of dtrace expect.
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
  bool is_enabled(dif::ProbeId id) const override;
  void note_disabled(dif::ProbeId id) override;
  /// BEGIN fires when tracing begins, and only then.
  std::optional<std::string> why_fixed(dif::ProbeId id) const override;

  /// Empty while nobody enabled them.
  std::optional<dif::ProbeId> begin() const { return enabled_id(kBegin); }
  std::optional<dif::ProbeId> end() const { return enabled_id(kEnd); }
  bool error_is_enabled() const { return enabled_[kError]; }
  /// Enabled or not.
  dif::ProbeId end_id() const { return id_at(kEnd); }
  dif::ProbeId error_id() const { return id_at(kError); }

 private:
  enum : std::uint32_t { kBegin, kEnd, kError, kProbes };
  std::optional<dif::ProbeId> enabled_id(std::uint32_t index) const;
  Probe probe(std::uint32_t index) const;

  std::array<bool, kProbes> enabled_ = {};
};

}  // namespace ringside::providers
