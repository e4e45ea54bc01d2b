#include "providers/stable/place_evaluator.h"

#include <algorithm>
#include <array>

#include "dif/program/insn.h"

namespace ringside::providers {
namespace {

tl::unexpected<Fault> nothing_there() {
  return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
}

/// The guest at a place: the firing's, but for the arguments, which are the place's own.
class GuestAtPlace final : public dif::GuestContext {
 public:
  GuestAtPlace(const guest_linux::Kernel& kernel, const ArgumentPlan& plan,
               const ArgumentMoment& at)
      : kernel_(kernel), plan_(plan), at_(at) {}

  Result<std::uint64_t, Fault> variable(dif::ContextVariable which) const override {
    if (at_.guest != nullptr) return at_.guest->variable(which);
    if (which != dif::ContextVariable::Curthread) return nothing_there();
    return TRY(kernel_.current_task(at_.kernel, at_.percpu_base)).raw();
  }
  Result<std::size_t, Fault> execname(std::span<char> out) const override {
    return at_.guest != nullptr ? at_.guest->execname(out)
                                : Result<std::size_t, Fault>(nothing_there());
  }
  Result<std::uint64_t, Fault> argument(unsigned n) const override { return plan_.value(n, at_); }
  const GuestReader& kernel() const override { return at_.kernel; }
  const GuestReader& user() const override {
    static const NoMemory no_memory;
    return at_.guest != nullptr ? at_.guest->user() : no_memory;
  }
  bool is_on_vcpu() const override { return true; }
  Result<std::uint64_t, Fault> machine_register(dif::RegisterSet set,
                                                std::uint64_t n) const override {
    return at_.guest != nullptr ? at_.guest->machine_register(set, n)
                                : dif::GuestContext::machine_register(set, n);
  }

 private:
  const guest_linux::Kernel& kernel_;
  const ArgumentPlan& plan_;
  const ArgumentMoment& at_;
};

/// Little of everything: the objects use no strings, no scratch and no variables.
dif::EngineOptions small_options() {
  constexpr std::size_t kPage = 4096;
  dif::EngineOptions options;
  options.buffer_size = options.aggregation_size = options.dynamic_size = kPage;
  options.scratch_size = options.speculation_size = kPage;
  options.string_size = 2;
  options.speculations = 0;
  return options;
}

/// Variables that a firing has and a place does not.
bool has_firing(const dif::Difo& difo) {
  constexpr std::array kOfFiring = {dif::Builtin::Walltimestamp, dif::Builtin::Epid,
                                    dif::Builtin::Id};
  return std::ranges::any_of(difo.text, [&](std::uint32_t word) {
    const dif::Insn insn{word};
    return insn.op() == dif::Opcode::Ldgs &&
           std::ranges::find(kOfFiring, static_cast<dif::Builtin>(insn.index())) != kOfFiring.end();
  });
}

}  // namespace

PlaceEvaluator::Evaluators::Evaluators(unsigned cpus)
    : options(small_options()), shared(program, options, cpus), speculations(options, cpus, {}) {
  for (unsigned cpu = 0; cpu < cpus; ++cpu) {
    by_cpu.push_back(std::make_unique<dif::Evaluator>(program, options, shared, speculations, cpu));
  }
}

Result<void> PlaceEvaluator::check(const dif::Difo& difo) {
  const bool has_text = difo.strings.size() > 1 || difo.result.kind != dif::ValueKind::Integer;
  if (!difo.variables.empty() || has_text || dif::changes_the_guest(difo)) {
    return fail(ErrorCode::Unsupported,
                "a probe's condition and arguments are numbers and addresses, made without strings "
                "and without variables");
  }
  if (has_firing(difo)) {
    return fail(ErrorCode::Unsupported,
                "walltimestamp, id and epid are a program's: a probe's condition and arguments "
                "cannot have them");
  }
  return {};
}

void PlaceEvaluator::make_room() {
  const auto cpus = static_cast<unsigned>(kernel_.percpu_bases().size());
  if (evaluators_ == nullptr) evaluators_ = std::make_unique<Evaluators>(std::max(cpus, 1U));
}

Result<std::uint64_t, Fault> PlaceEvaluator::evaluate(const dif::Difo& difo,
                                                      const ArgumentPlan& plan,
                                                      const ArgumentMoment& at) const {
  const auto cpu = kernel_.cpu_of(at.percpu_base);
  if (evaluators_ == nullptr || !cpu || *cpu >= evaluators_->by_cpu.size()) return nothing_there();
  const GuestAtPlace guest(kernel_, plan, at);
  const dif::FireRecord record{*cpu, at.time, 0};
  dif::Evaluator& evaluator = *evaluators_->by_cpu[*cpu];
  evaluator.begin_firing({}, record, guest);
  return evaluator.evaluate(difo);
}

Result<std::uint64_t, Fault> PlaceEvaluator::current_task(const ArgumentMoment& at) const {
  return GuestAtPlace(kernel_, kNoArguments, at).variable(dif::ContextVariable::Curthread);
}

}  // namespace ringside::providers
