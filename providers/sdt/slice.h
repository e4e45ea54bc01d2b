// A slice: the instructions that a static tracepoint runs when it is on, from its jump label's
// target to the call of its functions. They compute the tracepoint's arguments. Evaluating them on
// the host, from the registers of a vCPU at the site, gives the arguments without enabling the
// tracepoint. A slice is prepared when a probe is looked up, and run when the probe fires. Fire
// context: run() yes; prepare() no.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "disasm/evaluation.h"
#include "providers/context/argument_plan.h"
#include "providers/sdt/function_flow.h"
#include "providers/sdt/slice_needs.h"
#include "vmm/linux/text/static_tracepoints.h"

namespace ringside::providers {

/// A parameter of a tracepoint, without the first one (void *__data).
struct SliceParameter {
  std::uint8_t bytes = 8;
  bool is_signed = false;
  std::uint64_t leads_to = 0;  // bytes that a pointer leads to
};

class Slice {
 public:
  struct Source {
    const GuestReader& text;
    const guest_linux::Kernel& kernel;
    const guest_linux::StaticTracepoint& tracepoint;
    const FunctionFlow& flow;
    const std::vector<bool>& others;  // FunctionFlow::reachable_without(tracepoint.key)
    std::span<const SliceParameter> parameters;
  };
  /// The one that begins at `target`. Unsupported: what it does cannot all be evaluated.
  static Result<Slice> prepare(const Source& source, FunctionFlow::Index target);

  /// Calls: the tracepoint fires. Leaves: it does not, by a condition of its own.
  enum class End : std::uint8_t { Calls, Leaves };
  /// From where `state` is, which is at the site. Fault: memory, or more steps than any slice has.
  Result<End, Fault> run(disasm::Evaluation& state, const GuestReader& memory,
                         FilterValues& out) const;

  /// Adds to `needs` what run() may look at from there, whichever way it takes, and returns the
  /// addresses of the arguments that are known on all ways.
  std::vector<std::optional<dif::RecordAddress>> add_to(SliceNeeds& needs,
                                                        SliceNeeds::State state) const;

  /// Whether the instruction there is a part of it.
  bool has(GuestVirt at) const;
  /// Whether a second label of the tracepoint lies in it: then that one's target runs when the
  /// tracepoint is on.
  bool has_own_label() const { return has_own_label_; }

 private:
  enum class Kind : std::uint8_t {
    Evaluate,
    OtherLabel,  // goes its way by what its bytes are at that moment
    Return,      // of a function that it has called
    Call,        // of the tracepoint's functions
    TailCall,
    Leave,
  };
  struct Step {
    Kind kind = Kind::Evaluate;
    std::uint32_t next = 0, jump = 0;  // in steps_
    disasm::Operation in{};
  };
  class Preparation;

  Result<void, Fault> take_arguments(const disasm::Evaluation& state, Kind call,
                                     FilterValues& out) const;

  struct Way;
  bool follow(Way& way, SliceNeeds& needs, std::vector<Way>& others) const;
  std::vector<std::optional<dif::RecordAddress>> arguments_of(Way& way, SliceNeeds& needs,
                                                              Kind call) const;

  Result<std::uint32_t, Fault> step_at(GuestVirt address) const;

  std::vector<Step> steps_;  // the first one is where it begins
  std::vector<SliceParameter> parameters_;
  GuestVirt functions_;  // tracepoint.functions
  bool has_own_label_ = false;
};

}  // namespace ringside::providers
