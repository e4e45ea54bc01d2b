// In this file, top to bottom: preparing, running, finding what it looks at.
#include "providers/sdt/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "providers/trap_points/sites/function_sites.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using disasm::Effect;
using disasm::Evaluation;
using disasm::Flow;
using disasm::Operation;
using guest_linux::Kernel;

/// The longest slices of 6.1 and 6.12 have some 40 instructions.
constexpr std::size_t kLongestSlice = 400;
/// Functions that are evaluated, too.
constexpr std::uint64_t kLargestCalled = 512;
constexpr std::size_t kMostCalled = 8;
/// Where the slice finds one function to call, though nobody has enabled the tracepoint: no address
/// of any guest.
constexpr GuestVirt kFunction(0x5100'0000'0000'0000);

}  // namespace

/// Walks through the block and the functions that it calls, each instruction once.
class Slice::Preparation {
 public:
  explicit Preparation(const Source& source) : source_(source) {}

  Result<Slice> from(FunctionFlow::Index target) {
    slice_.functions_ = source_.tracepoint.functions;
    slice_.parameters_.assign(source_.parameters.begin(), source_.parameters.end());
    step_of({&source_.flow, target});
    // Grows meanwhile.
    for (std::size_t n = 0; n < places_.size(); ++n) TRY(add(n));
    const bool calls = std::ranges::any_of(slice_.steps_, [](const Step& step) {
      return step.kind == Kind::Call || step.kind == Kind::TailCall;
    });
    if (!calls) return refuse("the code after it does not call the tracepoint's functions");
    return std::move(slice_);
  }

 private:
  /// An instruction of the tracepoint's function, or of one that is called.
  struct InstructionAt {
    const FunctionFlow* flow;
    FunctionFlow::Index index;  // kNone: elsewhere
    auto operator<=>(const InstructionAt&) const = default;
  };

  tl::unexpected<Error> refuse(std::string why) const {
    return fail(ErrorCode::Unsupported, std::move(why));
  }
  tl::unexpected<Error> refuse(GuestVirt at, std::string_view why) const {
    return refuse(
        fmt::format("its arguments need {} at {}", why, source_.kernel.symbols().describe(at)));
  }
  bool is_called(const InstructionAt& place) const { return place.flow != &source_.flow; }

  /// The step of this instruction, which is added if there is none yet.
  std::uint32_t step_of(const InstructionAt& place) {
    const auto [known, is_new] =
        known_.try_emplace(place, static_cast<std::uint32_t>(slice_.steps_.size()));
    if (is_new) {
      slice_.steps_.emplace_back();
      places_.push_back(place);
    }
    return known->second;
  }

  Result<void> add(std::size_t n) {
    const InstructionAt place = places_[n];
    if (places_.size() > kLongestSlice) return refuse("the code after it is too long");
    Step step;
    const bool is_elsewhere = place.index == FunctionFlow::kNone;
    if (is_elsewhere && is_called(place)) return refuse("a function that it calls goes elsewhere");
    if (is_elsewhere || (!is_called(place) && source_.others[place.index])) {
      step.kind = Kind::Leave;
      slice_.steps_[n] = step;
      return {};
    }
    const FunctionFlow::Node& node = (*place.flow)[place.index];
    step.in.address = node.at;
    step.in.length = node.in.length;
    step.in.effect = Effect::Nothing;
    if (is_call_of_functions(node.at)) {
      step.kind = node.in.flow == Flow::Call ? Kind::Call : Kind::TailCall;
    } else if (node.key != GuestVirt()) {
      add_label(place, node, step);
    } else {
      TRY(add_instruction(place, node, step));
    }
    slice_.steps_[n] = step;
    return {};
  }

  /// Its own labels are taken, as they are when it is on.
  void add_label(const InstructionAt& place, const FunctionFlow::Node& node, Step& step) {
    step.jump = step_of({place.flow, node.jump});
    if (node.key == source_.tracepoint.key) {
      slice_.has_own_label_ = true;
      step.in.effect = Effect::Jump;
      step.in.target = node.in.target;
      step.next = step.jump;
    } else {
      step.kind = Kind::OtherLabel;
      step.next = step_of({place.flow, node.next});
    }
  }

  Result<void> add_instruction(const InstructionAt& place, const FunctionFlow::Node& node,
                               Step& step) {
    if (node.in.flow == Flow::Stop && node.next != FunctionFlow::kNone) {
      step.next = step_of({place.flow, node.next});  // a warning, which the kernel passes
      return {};
    }
    std::array<std::byte, arch::kLongestInstruction> bytes;
    const auto code = std::span(bytes).first(node.in.length);
    if (!source_.text.read(node.at, code)) return refuse(node.at, "text that cannot be read");
    const auto in = disasm::decode_evaluable(code, node.at);
    if (!in) return refuse(node.at, in.error().message);
    step.in = *in;
    if (returns(*in)) {
      step.in.effect = Effect::Return;
      step.kind = is_called(place) ? Kind::Return : Kind::Leave;
      return {};
    }
    const bool always_jumps = in->effect == Effect::Jump && in->condition == arch::kNoCondition;
    if (in->effect == Effect::Jump) step.jump = step_of({place.flow, node.jump});
    if (in->effect == Effect::Call) {
      if (only_takes_time(*in)) {
        step.in.effect = Effect::Nothing;
      } else {
        step.jump = step_of(TRY(called(*in)));
      }
    }
    step.next = always_jumps ? step.jump : step_of({place.flow, node.next});
    return {};
  }

  /// ret, or the jump that stands for it where return predictors need help.
  bool returns(const Operation& in) const {
    if (in.effect != Effect::Jump || in.condition != arch::kNoCondition)
      return in.effect == Effect::Return;
    const auto names = source_.kernel.symbols().all_at(in.target);
    return std::ranges::any_of(names, [](const auto& one) { return is_return_thunk(one.name); });
  }
  /// A call that no argument depends on: it takes nothing, gives nothing back and changes nothing
  /// that the arguments are made of. By some a kernel that preempts itself lets others run, as at
  /// the end of each section that must not be preempted; these keep all registers, since they stand
  /// in code that the compiler takes to call nothing (__preempt_schedule() of
  /// arch/x86/include/asm/preempt.h). By others it tells RCU that an idle CPU is about to be traced
  /// (__DO_TRACE of include/linux/tracepoint.h, up to 6.5).
  bool only_takes_time(const Operation& in) const {
    static constexpr std::array<std::string_view, 8> kNames = {
        "preempt_schedule_thunk", "preempt_schedule_notrace_thunk",
        "preempt_schedule",       "preempt_schedule_notrace",
        "ct_irq_enter_irqson",    "ct_irq_exit_irqson",
        "rcu_irq_enter_irqson",   "rcu_irq_exit_irqson"};
    const auto names = source_.kernel.symbols().all_at(in.target);
    return std::ranges::any_of(
        names, [](const auto& one) { return std::ranges::find(kNames, one.name) != kNames.end(); });
  }
  /// The first instruction of a function that can be evaluated, as it seems.
  Result<InstructionAt> called(const Operation& in) {
    const auto known = std::ranges::find(called_, in.target, &Called::at);
    if (known != called_.end()) return InstructionAt{&known->flow, known->flow.at(in.target)};
    const std::string text =
        fmt::format("a call of {}", source_.kernel.symbols().describe(in.target));
    const guest_linux::Symbol* const function = source_.kernel.symbols().at(in.target);
    const bool is_small = function != nullptr && function->address == in.target &&
                          function->size <= kLargestCalled && called_.size() < kMostCalled;
    if (!is_small) return refuse(in.address, text);
    auto flow = FunctionFlow::read(source_.text, source_.kernel, in.target);
    if (!flow) return refuse(in.address, text);
    called_.push_back({in.target, std::move(*flow)});
    return InstructionAt{&called_.back().flow, called_.back().flow.at(in.target)};
  }
  bool is_call_of_functions(GuestVirt at) const {
    for (const auto& site : Kernel::sites_from(source_.kernel.patched_sites(), at)) {
      if (site.address != at) break;
      if (site.key == source_.tracepoint.call_key) return true;
    }
    return false;
  }

  struct Called {
    GuestVirt at;
    FunctionFlow flow;
  };
  const Source& source_;
  Slice slice_;
  std::vector<InstructionAt> places_;  // of the steps
  std::map<InstructionAt, std::uint32_t> known_;
  std::deque<Called> called_;
};

Result<Slice> Slice::prepare(const Source& source, FunctionFlow::Index target) {
  return Preparation(source).from(target);
}

bool Slice::has(GuestVirt at) const {
  return std::ranges::any_of(
      steps_, [at](const Step& step) { return step.kind != Kind::Leave && step.in.address == at; });
}

Result<void, Fault> Slice::take_arguments(const Evaluation& state, Kind call,
                                          FilterValues& out) const {
  constexpr auto& kRegisters = arch::kArgumentRegisters;
  const std::size_t count = std::min(parameters_.size(), out.words.size());
  // A tail call finds the return address on top, as a called function does.
  std::uint64_t on_stack = call == Kind::TailCall ? arch::kFirstStackArgument : 0;
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t place = n + 1;  // after __data
    std::uint64_t word = 0;
    if (place < kRegisters.size()) {
      word = state.registers().*kRegisters[place];
    } else {
      const GuestVirt at(state.registers().*arch::kStackPointer);
      word = TRY(state.load(at.wrapping_add(on_stack), arch::kStackWord));
      on_stack += arch::kStackWord;
    }
    // Only we have the words that the block has made in memory: a program would read something else
    // there.
    if (state.has_written(GuestVirt(word), parameters_[n].leads_to)) {
      return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, word});
    }
    const unsigned unused = 64 - parameters_[n].bytes * 8U;
    const std::uint64_t top = word << unused;
    out.words[n] = parameters_[n].is_signed
                       ? static_cast<std::uint64_t>(static_cast<std::int64_t>(top) >> unused)
                       : top >> unused;
  }
  return {};
}

/// Where a called function returns to, which its stack says.
Result<std::uint32_t, Fault> Slice::step_at(GuestVirt address) const {
  const auto found = std::ranges::find_if(steps_, [address](const Step& step) {
    return step.kind != Kind::Leave && step.in.address == address;
  });
  if (found == steps_.end()) {
    return Unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, address.raw()});
  }
  return static_cast<std::uint32_t>(found - steps_.begin());
}

Result<Slice::End, Fault> Slice::run(Evaluation& state, const GuestReader& memory,
                                     FilterValues& out) const {
  constexpr std::uint8_t kWord = sizeof(std::uint64_t);
  // Kernels look whether there is anything to call, and take the first one's data as __data.
  TRY(state.store(functions_, kWord, kFunction.raw()));
  TRY(state.store(kFunction, kWord, 1));
  TRY(state.store(kFunction.wrapping_add(kWord), kWord, 0));
  std::uint32_t at = 0;
  for (std::size_t left = kLongestSlice; left > 0; --left) {
    const Step& step = steps_[at];
    switch (step.kind) {
      case Kind::Leave: return End::Leaves;
      case Kind::Call:
      case Kind::TailCall: TRY(take_arguments(state, step.kind, out)); return End::Calls;
      case Kind::OtherLabel: {
        const auto opcode = TRY(load<std::byte>(memory, step.in.address));
        at = arch::is_jump(opcode) ? step.jump : step.next;
        break;
      }
      case Kind::Evaluate: {
        const GuestVirt next = TRY(state.step(step.in));
        const bool branches = step.in.effect == Effect::Jump || step.in.effect == Effect::Call;
        at = branches && next == step.in.target ? step.jump : step.next;
        break;
      }
      case Kind::Return: at = TRY(step_at(TRY(state.step(step.in)))); break;
    }
  }
  return Unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, steps_[at].in.address.raw()});
}

// Its looks at memory

using Addresses = std::vector<std::optional<dif::RecordAddress>>;

struct Slice::Way {
  std::uint32_t at = 0;  // in steps_
  SliceNeeds::State state;
  std::optional<Addresses> arguments{};  // once it has called the tracepoint's functions
};

/// As take_arguments(). Less than a word is no address.
Addresses Slice::arguments_of(Way& way, SliceNeeds& needs, Kind call) const {
  constexpr auto& kRegisters = arch::kArgumentRegisters;
  Addresses addresses;
  SliceNeeds::Value on_stack = SliceNeeds::register_of(way.state, arch::kStackPointer);
  if (call == Kind::TailCall && on_stack.address) {
    on_stack.address->offset += arch::kFirstStackArgument;
  }
  const std::size_t count = std::min<std::size_t>(parameters_.size(), dif::kMaxProbeArguments);
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t place = n + 1;  // after __data
    SliceNeeds::Value value;
    if (place < kRegisters.size()) {
      value = SliceNeeds::register_of(way.state, kRegisters[place]);
    } else {
      value = needs.load(way.state, on_stack, arch::kStackWord);
      if (on_stack.address) on_stack.address->offset += arch::kStackWord;
    }
    const bool is_word = parameters_[n].bytes == sizeof(std::uint64_t);
    addresses.push_back(is_word ? needs.resolved(value).address : std::nullopt);
  }
  return addresses;
}

/// One step. False where the way ends.
bool Slice::follow(Way& way, SliceNeeds& needs, std::vector<Way>& others) const {
  const Step& step = steps_[way.at];
  const bool is_conditional =
      step.in.effect == Effect::Jump && step.in.condition != arch::kNoCondition;
  switch (step.kind) {
    case Kind::Leave: return false;
    case Kind::Call:
    case Kind::TailCall: way.arguments = arguments_of(way, needs, step.kind); return false;
    case Kind::OtherLabel:
      needs.load(way.state, SliceNeeds::Value::of(step.in.address.raw()), 1);
      others.push_back({step.jump, way.state});
      break;
    case Kind::Evaluate:
      needs.step(way.state, step.in);
      if (is_conditional) others.push_back({step.jump, way.state});
      if (step.in.effect == Effect::Call) {
        way.at = step.jump;
        return true;
      }
      break;
    case Kind::Return: {
      const auto address = needs.pop(way.state).constant();
      const auto next = address ? step_at(GuestVirt(*address)) : Unexpected<Fault>(Fault());
      if (!next) {
        needs.prevent();
        return false;
      }
      way.at = *next;
      return true;
    }
  }
  way.at = step.next;
  return true;
}

Addresses Slice::add_to(SliceNeeds& needs, SliceNeeds::State state) const {
  constexpr std::size_t kMostWays = 64, kMostSteps = 4096;  // of all ways
  using Value = SliceNeeds::Value;
  constexpr std::uint8_t kWord = sizeof(std::uint64_t);
  needs.store(state, Value::of(functions_.raw()), kWord, Value::of(kFunction.raw()));
  needs.store(state, Value::of(kFunction.raw()), kWord, Value::of(1));
  needs.store(state, Value::of(kFunction.wrapping_add(kWord).raw()), kWord, Value::of(0));
  std::vector<Way> open;
  open.push_back({0, std::move(state)});
  std::optional<Addresses> arguments;
  for (std::size_t ways = 0, steps = 0; !open.empty(); ++ways) {
    Way way = std::move(open.back());
    open.pop_back();
    while (steps < kMostSteps && follow(way, needs, open)) ++steps;
    if (steps >= kMostSteps || ways + open.size() >= kMostWays) {
      needs.prevent();
      return {};
    }
    if (!way.arguments) continue;
    if (!arguments) arguments = *way.arguments;
    for (std::size_t n = 0; n < arguments->size(); ++n) {
      if ((*arguments)[n] != (*way.arguments)[n]) (*arguments)[n].reset();
    }
  }
  return arguments.value_or(Addresses());
}

}  // namespace ringside::providers
