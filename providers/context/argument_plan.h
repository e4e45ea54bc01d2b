// An argument plan tells where the arguments of a probe come from. A provider supplies it: for each
// place of a probe (binding.h), for a timer (profile.h), for an event (vm_dispatch.h). The context
// of a firing follows the plan when the program asks for an argument. Only dtrace:::ERROR has no
// plan: the engine fires it inside another firing, and its arguments describe the fault. Does not:
// know types; Provider::arguments() has those.
//
// How to add a source: one more ArgumentSource::Kind, its arm in argument_value(), and a hostile
// case in argument_plan_test.cc.
// Fire context: yes.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>

#include "dif/program/builtin.h"
#include "dif/verify/record_needs.h"
#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"

namespace ringside::dif {
class GuestContext;
}  // namespace ringside::dif

namespace ringside::providers {

/// The values that a TrapFilter has worked out before the probe fires (binding.h).
struct FilterValues {
  std::array<std::uint64_t, dif::kMaxProbeArguments> words{};
  std::optional<Fault> fault{};  // why there are no words
};

/// The moment that arguments are taken from. Its words are the guest's: hostile.
struct ArgumentMoment {
  const Registers& registers;
  const GuestReader& kernel;                    // kernel addresses, as this moment maps them
  std::uint64_t site = 0;                       // what the binding says of its place
  std::span<const std::uint64_t> facts{};       // what the host knows of the firing (HostFacts)
  const FilterValues* filter_values = nullptr;  // null: nothing was
  GuestVirt percpu_base{};                      // of the CPU: current_task() takes it
  const dif::GuestContext* guest = nullptr;     // the firing's; null where there is none
  std::uint64_t time = 0;                       // the firing's timestamp, where it has one
};

/// The host's own knowledge of a firing: an event's values, or by how many ns a timer is late.
using HostFacts = std::array<std::uint64_t, 7>;

struct RecordedArgument;

/// Arguments that are computed: by running a piece of the guest's code on the host, or by following
/// the guest's structures. One object may serve all arguments of a probe. Called in fire context.
class ComputedArguments {
 public:
  virtual ~ComputedArguments() = default;
  virtual Result<std::uint64_t, Fault> argument(unsigned n, const ArgumentMoment& at) const = 0;
  /// The memory that it reads for argument `n`; a recorded trap copies it. Not in fire context.
  virtual RecordedArgument recorded(unsigned n) const = 0;
};

/// The low `bits` (1 to 64) of a word, as a number of their own.
constexpr std::uint64_t low_bits(std::uint64_t word, unsigned bits, bool is_signed) {
  const unsigned unused = 64U - bits;
  word <<= unused;
  if (!is_signed) return word >> unused;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(word) >> unused);
}

/// Where one argument comes from.
class ArgumentSource {
 public:
  using Register = arch::Register;

  /// No argument: reads as 0.
  constexpr ArgumentSource() = default;
  static constexpr ArgumentSource in(Register which) { return {Kind::Register, which, 0, nullptr}; }
  /// The 8 bytes of kernel memory at the register's value plus `offset`: a word of the stack, a
  /// member of the pt_regs that the register points at.
  static constexpr ArgumentSource word(Register base, std::uint32_t offset) {
    return {Kind::Word, base, offset, nullptr};
  }
  /// The value that the binding holds for its place (Binding::site).
  static constexpr ArgumentSource of_site() { return {Kind::Site, nullptr, 0, nullptr}; }
  /// Word `n` of what the host knows of the firing; 0 where it knows less.
  static constexpr ArgumentSource fact(std::uint32_t n) {
    return {Kind::Fact, nullptr, n, nullptr};
  }
  /// Word `n` of what the TrapFilter has worked out.
  static constexpr ArgumentSource filter_value(std::uint32_t n) {
    return {Kind::FilterValues, nullptr, n, nullptr};
  }
  /// The program counter where the vCPU is in the kernel, else 0; and the same for user mode.
  static constexpr ArgumentSource kernel_pc() { return {Kind::KernelPc, nullptr, 0, nullptr}; }
  static constexpr ArgumentSource user_pc() { return {Kind::UserPc, nullptr, 0, nullptr}; }
  /// Argument `n` of `by`, which must outlive every firing.
  static constexpr ArgumentSource computed(const ComputedArguments& by, unsigned n) {
    return {Kind::Computed, nullptr, n, &by};
  }

  /// The same, but only the low `bytes` count: the higher ones of a register or word are undefined.
  /// `bytes`: 1, 2, 4 or 8.
  constexpr ArgumentSource narrowed(std::uint8_t bytes, bool is_signed) const {
    ArgumentSource source = *this;
    source.bytes_ = bytes;
    source.is_signed_ = is_signed;
    return source;
  }

  /// An argument that exists, but whose value is not known: reading it is a fault.
  static constexpr ArgumentSource untold() { return {Kind::Untold, nullptr, 0, nullptr}; }

  constexpr bool exists() const { return kind_ != Kind::None; }
  /// Whether it is read from a vCPU: from its registers, or from memory by them.
  constexpr bool needs_vcpu() const {
    return kind_ != Kind::None && kind_ != Kind::Site && kind_ != Kind::Fact &&
           kind_ != Kind::Untold;
  }
  /// The object that computes it, and which argument of that it is; null: nothing does.
  constexpr std::pair<const ComputedArguments*, unsigned> computation() const {
    return {computed_, number_};
  }
  /// Which word of the TrapFilter it is.
  constexpr std::optional<unsigned> filter_word() const {
    return kind_ == Kind::FilterValues ? std::optional(number_) : std::nullopt;
  }
  constexpr bool is_told() const { return kind_ != Kind::Untold; }
  /// How many bytes of the value count, and whether they have a sign (of fewer than all).
  constexpr unsigned bytes() const { return bytes_; }
  constexpr bool is_signed() const { return is_signed_; }
  /// The register that has the argument.
  constexpr std::optional<Register> in_register() const {
    return kind_ == Kind::Register ? std::optional(register_) : std::nullopt;
  }
  /// The same, if the argument is all of it.
  constexpr std::optional<Register> whole_register() const {
    return bytes_ == sizeof(std::uint64_t) ? in_register() : std::nullopt;
  }
  /// Where in memory the argument lies.
  struct WordPlace {
    Register base;
    std::uint32_t offset;
  };
  constexpr std::optional<WordPlace> word() const {
    if (kind_ != Kind::Word) return std::nullopt;
    return WordPlace{register_, number_};
  }
  constexpr bool operator==(const ArgumentSource&) const = default;

  /// Fault: a word that is not mapped, or what the computation meets.
  Result<std::uint64_t, Fault> value(const ArgumentMoment& at) const {
    return low_bits(TRY(whole_value(at)), 8U * bytes_, is_signed_);
  }

 private:
  enum class Kind : std::uint8_t {
    None,
    Register,
    Word,
    Site,
    Fact,
    FilterValues,
    KernelPc,
    UserPc,
    Computed,
    Untold
  };
  constexpr ArgumentSource(Kind kind, Register base, std::uint32_t number,
                           const ComputedArguments* computed)
      : kind_(kind), number_(number), register_(base), computed_(computed) {}
  Result<std::uint64_t, Fault> whole_value(const ArgumentMoment& at) const;

  Kind kind_ = Kind::None;
  std::uint8_t bytes_ = sizeof(std::uint64_t);  // how many of the value count
  bool is_signed_ = false;                      // of fewer than all
  std::uint32_t number_ =
      0;  // Word: the offset; Fact, FilterValues: which; Computed: which argument
  Register register_ = nullptr;
  const ComputedArguments* computed_ = nullptr;
};

/// All that a program can ask of a probe's place. Providers keep one for each shape, not one for
/// each probe; bindings point at it.
struct ArgumentPlan {
  std::array<ArgumentSource, dif::kMaxProbeArguments> arguments;  // arg0..arg9, and so args[]
  /// The result of a system call, where the probe is at its return: what errno is made of.
  ArgumentSource system_call_result;
  /// Which system call it is, at a place that many of them share (Binding::number).
  ArgumentSource system_call_number;
  /// At a system call's return: where the arguments of its entry still are.
  struct Kept {
    /// From the lowest address of the task's stack on; 0: nowhere.
    std::array<std::uint32_t, dif::kMaxProbeArguments> on_stack{};
    bool until_success = false;  // a call that succeeds overwrites them

    bool any() const { return on_stack != Kept().on_stack; }
    bool operator==(const Kept&) const = default;
  };
  Kept kept{};

  bool operator==(const ArgumentPlan&) const = default;
  Result<std::uint64_t, Fault> value(unsigned n, const ArgumentMoment& at) const {
    if (n >= arguments.size()) return 0;
    return arguments[n].value(at);
  }
  bool needs_vcpu(unsigned n) const { return n < arguments.size() && arguments[n].needs_vcpu(); }
};

/// The guest's memory that a provider's own code reads to decide whether a probe fires, or to
/// compute an argument. `plan` says where the arguments come from that `needs` names.
struct RecordedCode {
  ArgumentPlan plan{};
  dif::RecordNeeds needs{};
};
/// The same of code that computes an argument. `address`: the argument, if it is an address that
/// can be told from the loads of `code.needs`.
struct RecordedArgument {
  RecordedCode code{};
  std::optional<dif::RecordAddress> address{};
};

/// The plan of a probe without arguments: all are 0.
inline constexpr ArgumentPlan kNoArguments{};
/// arg0 and what follows; the others are 0.
constexpr ArgumentPlan arguments_from(std::initializer_list<ArgumentSource> sources) {
  ArgumentPlan plan;
  std::size_t n = 0;
  for (const ArgumentSource& source : sources) plan.arguments[n++] = source;
  return plan;
}
/// The host's facts, word by word.
constexpr ArgumentPlan facts_as_arguments(std::uint32_t count) {
  ArgumentPlan plan;
  for (std::uint32_t n = 0; n < count; ++n) plan.arguments[n] = ArgumentSource::fact(n);
  return plan;
}
/// At a function's first instruction: in registers, then on the stack.
inline constexpr ArgumentPlan kFunctionEntryArguments = [] {
  constexpr auto& kRegisters = arch::kArgumentRegisters;
  ArgumentPlan plan;
  std::uint32_t on_stack = arch::kFirstStackArgument;
  for (std::size_t n = 0; n < plan.arguments.size(); ++n) {
    if (n < kRegisters.size()) {
      plan.arguments[n] = ArgumentSource::in(kRegisters[n]);
    } else {
      plan.arguments[n] = ArgumentSource::word(arch::kStackPointer, on_stack);
      on_stack += arch::kStackWord;
    }
  }
  return plan;
}();
/// At a way out of a function: arg0 is its distance from the function's start (Binding::site), arg1
/// the value. The value is known only if the way out is a return.
inline constexpr ArgumentPlan kFunctionExitArguments{
    {ArgumentSource::of_site(), ArgumentSource::untold()}, {}, {}};
inline constexpr ArgumentPlan kFunctionReturnArguments{
    {ArgumentSource::of_site(), ArgumentSource::in(arch::kReturnRegister)}, {}, {}};
/// Where the return register has a system call's result: arg0 and arg1, as dtrace has it.
inline constexpr ArgumentPlan kSystemCallReturnArguments{
    {ArgumentSource::in(arch::kReturnRegister), ArgumentSource::in(arch::kReturnRegister)},
    ArgumentSource::in(arch::kReturnRegister),
    {}};

inline Result<std::uint64_t, Fault> ArgumentSource::whole_value(const ArgumentMoment& at) const {
  switch (kind_) {
    case Kind::None: return 0;
    case Kind::Register: return at.registers.*register_;
    case Kind::Word: {
      const std::uint64_t base = at.registers.*register_;
      const auto place = GuestVirt(base).checked_add(number_);
      if (!place) return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, base});
      return load<std::uint64_t>(at.kernel, *place);
    }
    case Kind::Site: return at.site;
    case Kind::Fact: return number_ < at.facts.size() ? at.facts[number_] : 0;
    case Kind::FilterValues:
      if (at.filter_values == nullptr || number_ >= at.filter_values->words.size()) return 0;
      if (at.filter_values->fault) return tl::make_unexpected(*at.filter_values->fault);
      return at.filter_values->words[number_];
    case Kind::KernelPc:
      return at.registers.in_user_mode() ? 0 : at.registers.*arch::kProgramCounter;
    case Kind::UserPc: return at.registers.in_user_mode() ? at.registers.*arch::kProgramCounter : 0;
    case Kind::Computed: return computed_->argument(number_, at);
    case Kind::Untold: return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
  }
  __builtin_unreachable();
}

}  // namespace ringside::providers
