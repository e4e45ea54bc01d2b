// A stable probe's place in one kernel: its definition's expressions, compiled for that kernel. It
// computes the probe's values there, and decides whether an arrival is a firing (binding.h). Made
// for each probe that a program asks for. Bindings refer to it and to the TrapFilter objects that
// it makes. Fire context: fires(), argument(); everything else no.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "providers/context/argument_plan.h"
#include "providers/context/binding.h"
#include "providers/stable/defined_probes.h"
#include "providers/stable/kernel_places.h"
#include "providers/stable/place_evaluator.h"
#include "providers/stable/start_table.h"

namespace ringside::providers {

class StablePlace final : public ComputedArguments {
 public:
  /// All must outlive it. Error (Unsupported): what this kernel lacks.
  static Result<std::unique_ptr<StablePlace>> make(const dif::ProbeDefinition& probe,
                                                   const DefinedProbes& defined,
                                                   const guest_linux::Kernel& kernel,
                                                   KernelPlaces& places,
                                                   const PlaceEvaluator& evaluator);
  StablePlace(const dif::ProbeDefinition& probe, const guest_linux::Kernel& kernel,
              const PlaceEvaluator& evaluator)
      : probe_(probe), kernel_(kernel), evaluator_(evaluator) {}

  Result<std::uint64_t, Fault> argument(unsigned n, const ArgumentMoment& at) const override;
  RecordedArgument recorded(unsigned n) const override;
  const ArgumentPlan& plan() const { return plan_; }
  const std::vector<TypeId>& types() const { return types_; }

  /// The TrapFilter for a binding at which the probe fires. `site` decides first which arrivals
  /// count, and computes their arguments; null: all count. Returns null if each arrival fires.
  const TrapFilter* at_end(const TrapFilter* site);
  /// The TrapFilter for a binding at the beginning. `displaced` counts the beginnings that were
  /// forgotten, since too much had begun at a time.
  const TrapFilter* at_start(const TrapFilter* site, std::atomic<std::uint64_t>& displaced);
  /// Before at_start(): what begins here takes the place of what has begun in others with this
  /// table. Those with the same `beginning` begin together.
  void share_starts(std::shared_ptr<StartTable> starts, const void* beginning) {
    starts_ = std::move(starts);
    begins_as_ = beginning;
  }

 private:
  /// The code of one place.
  struct Code {
    Code(dif::VerifiedProgram verified, const ArgumentPlan& passed)
        : program(std::move(verified)), plan(passed) {}
    const dif::Clause& clause() const { return program.program().clauses.front(); }
    const dif::Difo& value(std::size_t n) const { return clause().actions[n].arguments.front(); }

    dif::VerifiedProgram program;
    ArgumentPlan plan;  // what the place passes to the code
  };
  struct Width {
    unsigned bits = 64;
    bool is_signed = false;
  };
  class PlaceFilter final : public TrapFilter {
   public:
    enum class End : std::uint8_t { Beginning, End };
    PlaceFilter(const StablePlace& place, const TrapFilter* site, End end)
        : place_(place), site_(site), end_(end) {}
    bool fires(const ArgumentMoment& at, FilterValues& out) const override;
    RecordedFilter recorded() const override;

   private:
    const StablePlace& place_;
    const TrapFilter* const site_;
    const End end_;
  };

  Result<void> compile_end(const DefinedProbes& defined, KernelPlaces& places);
  Result<void> compile_beginning(const DefinedProbes& defined, KernelPlaces& places);
  bool holds(const Code& code, const ArgumentMoment& at) const;
  std::optional<std::uint64_t> key(const std::optional<Code>& code, std::size_t n,
                                   const ArgumentMoment& at) const;
  bool ends(const ArgumentMoment& at, FilterValues& out) const;
  bool begins(const ArgumentMoment& at) const;
  dif::RecordNeeds needs_at_end() const;

  const dif::ProbeDefinition& probe_;
  const guest_linux::Kernel& kernel_;
  const PlaceEvaluator& evaluator_;
  std::vector<TypeId> types_;
  std::vector<Width> widths_;
  std::optional<Code> end_, beginning_;
  unsigned adding_ = 0;  // bit set of the remembered words to which a further beginning adds
  ArgumentPlan plan_;
  std::deque<PlaceFilter> arrivals_;
  const void* begins_as_ = this;
  std::shared_ptr<StartTable> starts_;  // when one with a beginning is enabled
};

}  // namespace ringside::providers
