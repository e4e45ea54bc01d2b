// The provider `profile`: profile-N samples every vCPU, tick-N fires on vCPU 0 only. The usual
// rates are always published; any other is published when a program names it. As dtrace does, a
// name that cannot be served (profile-5001) matches nothing; refusals() has the reason.
// The fire loop owns the time: this provider only says which timers were enabled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "providers/context/argument_plan.h"
#include "providers/profile/timer_name.h"
#include "providers/provider.h"

namespace ringside::providers {

/// A timer that a program enabled.
struct EnabledTimer {
  dif::ProbeId probe;
  TimerKind kind = TimerKind::Tick;
  std::uint64_t interval = 0;                // ns
  const ArgumentPlan* plan = &kNoArguments;  // static; fact 0 is by how many ns it is late
};

class ProfileProvider final : public Provider {
 public:
  ProfileProvider();

  std::uint32_t id_count() const override { return kMostProbes; }
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override;
  /// A timer's name that we cannot serve: too fast, a suffix that does not exist.
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override;
  ProbeArguments arguments(const Probe& probe) override;
  Result<void> enable(const Probe& probe) override;
  bool is_enabled(dif::ProbeId id) const override;
  void note_disabled(dif::ProbeId id) override;

  /// In the order of enabling.
  const std::vector<EnabledTimer>& enabled() const { return enabled_; }
  /// Whether any of them is a profile-N.
  bool has_samples() const;

 private:
  static constexpr std::uint32_t kMostProbes = 4096;
  struct Published {
    std::string name;
    TimerName timer;
  };
  void publish(const std::string& name);
  Result<TimerName> servable(const std::string& name) const;
  Probe probe(std::size_t index) const;

  std::vector<Published> published_;
  std::vector<EnabledTimer> enabled_;
};

}  // namespace ringside::providers
