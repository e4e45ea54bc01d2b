// Runs the DIF of probes that D libraries define: their conditions, arguments, and what they
// remember. It has an evaluator of its own for each CPU, because an argument is asked for while the
// firing's own evaluator runs. The DIF may use the place's arguments, the built-in variables of the
// guest and its memory; no variables of D and no strings.
// Shared by the stable providers. Threads: any; of one CPU one at a time, which holds its firing
// lock. Fire context: evaluate().
#pragma once

#include <memory>
#include <vector>

#include "dif/engine/speculations.h"
#include "dif/evaluate/evaluate.h"
#include "dif/evaluate/guest_context.h"
#include "dif/verify/verify.h"
#include "providers/context/argument_plan.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class PlaceEvaluator {
 public:
  /// `kernel` must outlive it.
  explicit PlaceEvaluator(const guest_linux::Kernel& kernel) : kernel_(kernel) {}
  PlaceEvaluator(const PlaceEvaluator&) = delete;
  PlaceEvaluator& operator=(const PlaceEvaluator&) = delete;

  /// Whether it can run the object; the error says what the object has that it cannot have.
  static Result<void> check(const dif::Difo& difo);
  /// Before the first evaluate().
  void make_room();
  /// The value of an object that check() was content with. `plan` says what arg0, arg1... are.
  Result<std::uint64_t, Fault> evaluate(const dif::Difo& difo, const ArgumentPlan& plan,
                                        const ArgumentMoment& at) const;
  /// The address of its structure.
  Result<std::uint64_t, Fault> current_task(const ArgumentMoment& at) const;

 private:
  struct Evaluators {
    explicit Evaluators(unsigned cpus);

    const dif::Program program{};  // has none: no object needs its strings or variables
    dif::EngineOptions options;
    dif::SharedState shared;
    dif::Speculations speculations;
    std::vector<std::unique_ptr<dif::Evaluator>> by_cpu;
  };

  const guest_linux::Kernel& kernel_;
  std::unique_ptr<Evaluators> evaluators_;  // null: no probe needs one yet
};

}  // namespace ringside::providers
