// A stable probe's place in one kernel: computes the probe's values there, and decides whether an
// arrival is a firing (binding.h). Made for each probe that a program asks for. Bindings refer to
// it and to the TrapFilter objects that it makes. Fire context: fires(), argument(); everything
// else no.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "providers/context/argument_plan.h"
#include "providers/context/binding.h"
#include "providers/stable/kernel_places.h"
#include "providers/stable/place_value.h"
#include "providers/stable/stable_probe.h"
#include "providers/stable/start_table.h"

namespace ringside::providers {

/// The place of the probe's start (StableProbe::start, not null), in the form of a probe.
StableProbe place_of_start(const StableProbe& probe);

class StablePlace final : public ComputedArguments {
 public:
  /// Error (Unsupported): what this kernel lacks.
  static Result<std::unique_ptr<StablePlace>> make(const StableProbe& probe,
                                                   const guest_linux::Kernel& kernel,
                                                   KernelPlaces& places);
  StablePlace(const StableProbe& probe, const guest_linux::Kernel& kernel)
      : probe_(probe), kernel_(kernel) {}

  Result<std::uint64_t, Fault> argument(unsigned n, const ArgumentMoment& at) const override;
  const ArgumentPlan& plan() const { return plan_; }
  const std::vector<TypeId>& types() const { return types_; }

  /// The TrapFilter for a binding at which the probe fires. `site` decides first which arrivals
  /// count, and computes their arguments; null: all count. Returns null if each arrival fires.
  const TrapFilter* at_end(const TrapFilter* site);
  /// The TrapFilter for a binding at the start.
  const TrapFilter* at_start(const TrapFilter* site);

 private:
  struct Native {
    PlaceValue value;
    std::uint64_t (*shape)(std::uint64_t);
  };
  class PlaceFilter final : public TrapFilter {
   public:
    using Fires = bool (StablePlace::*)(const ArgumentMoment&, FilterValues&) const;
    PlaceFilter(const StablePlace& place, const TrapFilter* site, Fires fires)
        : place_(place), site_(site), fires_(fires) {}
    bool fires(const ArgumentMoment& at, FilterValues& out) const override;

   private:
    const StablePlace& place_;
    const TrapFilter* const site_;
    const Fires fires_;
  };

  Result<void> compile_start(KernelPlaces& places);
  std::optional<std::uint64_t> key(std::uint64_t object, const ArgumentMoment& at) const;
  bool ends(const ArgumentMoment& at, FilterValues& out) const;
  bool begins(const ArgumentMoment& at, FilterValues& out) const;
  std::optional<Start> start(const ArgumentMoment& at) const;

  const StableProbe& probe_;
  const guest_linux::Kernel& kernel_;
  std::vector<Native> natives_;
  std::vector<TypeId> types_;
  PlaceCondition condition_;
  ArgumentPlan plan_;
  std::deque<PlaceFilter> arrivals_;
  // Of one with a beginning:
  std::vector<PlaceValue> start_values_;
  PlaceCondition begins_, spoilt_;
  std::unique_ptr<StartTable> starts_;  // when it is enabled
};

}  // namespace ringside::providers
