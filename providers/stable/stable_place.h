// A stable probe's place in one kernel: the values that it has there, and whether an arrival is a
// firing. Made for each probe that is asked for; bindings lead to it and to the arrivals that it
// makes. Fire context: fires(), argument(); everything else no.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "providers/context/argument_plan.h"
#include "providers/context/arrival.h"
#include "providers/stable/kernel_places.h"
#include "providers/stable/place_value.h"
#include "providers/stable/stable_probe.h"
#include "providers/stable/start_table.h"

namespace ringside::providers {

/// Where that begins at whose end the probe fires, as a probe's. The probe has a beginning.
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

  /// For a binding where it fires; `site` says which arrivals are some, and with which arguments;
  /// null: all. Null: each arrival fires.
  const Arrival* at_end(const Arrival* site);
  /// For a binding where it begins.
  const Arrival* at_start(const Arrival* site);

 private:
  struct Native {
    PlaceValue value;
    std::uint64_t (*shape)(std::uint64_t);
  };
  class PlaceArrival final : public Arrival {
   public:
    using Fires = bool (StablePlace::*)(const ArgumentMoment&, ArrivalValues&) const;
    PlaceArrival(const StablePlace& place, const Arrival* site, Fires fires)
        : place_(place), site_(site), fires_(fires) {}
    bool fires(const ArgumentMoment& at, ArrivalValues& out) const override;

   private:
    const StablePlace& place_;
    const Arrival* const site_;
    const Fires fires_;
  };

  Result<void> compile_start(KernelPlaces& places);
  std::optional<std::uint64_t> key(std::uint64_t object, const ArgumentMoment& at) const;
  bool ends(const ArgumentMoment& at, ArrivalValues& out) const;
  bool begins(const ArgumentMoment& at, ArrivalValues& out) const;
  std::optional<Start> start(const ArgumentMoment& at) const;

  const StableProbe& probe_;
  const guest_linux::Kernel& kernel_;
  std::vector<Native> natives_;
  std::vector<TypeId> types_;
  PlaceCondition condition_;
  ArgumentPlan plan_;
  std::deque<PlaceArrival> arrivals_;
  // Of one with a beginning:
  std::vector<PlaceValue> start_values_;
  PlaceCondition begins_, spoilt_;
  std::unique_ptr<StartTable> starts_;  // when it is enabled
};

}  // namespace ringside::providers
