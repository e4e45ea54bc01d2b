// The expressions of stable probes. The tables have a place's arguments and conditions as text;
// this compiles the text for one kernel, with the guest's types.
//   value      sum of terms: "-result", "skb->head + skb->network_header", "flags & 16"
//   term       a number, a constant of the kernel (its enumerator), or a root and members: "arg1",
//              "task->signal->nr_threads", "sk->a.b"
//   root       arg0..arg9 (at an entry, or what the arrival works out), result (at a return),
//              current, &FUNCTION or &VARIABLE of the kernel, or an earlier native; with a start,
//              elapsed and start0..start2 (stable_probe.h)
//   condition  comparisons of values: all must hold, or, of those in parentheses, one:
//              "task->pid == task->tgid && (code != 0 || code & 8 == 0)"
// Does not: multiply, call, or know what a probe is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "providers/context/argument_plan.h"
#include "vmm/base/c_type.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// One value of a place. Fire context: value().
class PlaceValue {
 public:
  /// Fault: memory on the way that is not mapped.
  Result<std::uint64_t, Fault> value(const ArgumentMoment& at,
                                     const guest_linux::Kernel& kernel) const;

 private:
  friend class PlaceCompiler;
  /// A member on the way: what is loaded where the pointer so far leads.
  struct Step {
    std::uint64_t offset = 0;  // bytes
    std::uint8_t size = 0;     // bytes, up to 8
    std::uint8_t shift = 0;    // of a bit-field, in what was loaded
    std::uint8_t bits = 64;    // that are its value
    bool is_signed = false;
  };
  enum class Root : std::uint8_t { Number, Source, Current };
  enum class Join : std::uint8_t { Add, Subtract, And };  // with the terms before
  struct Term {
    Join join = Join::Add;
    Root root = Root::Number;
    std::uint64_t number = 0;
    ArgumentSource source{};
    std::vector<PlaceValue> base{};  // of a native before it; one at most
    std::vector<Step> steps{};
  };
  static Result<std::uint64_t, Fault> step(std::uint64_t base, const Step& step,
                                           const GuestReader& memory);
  static Result<std::uint64_t, Fault> term(const Term& term, const ArgumentMoment& at,
                                           const guest_linux::Kernel& kernel);

  std::vector<Term> terms_;
  unsigned bits_ = 64;  // of its type
  bool is_signed_ = false;
};

/// Comparisons of each group of which one must hold. Fire context: holds().
class PlaceCondition {
 public:
  /// Compares as signed numbers. A comparison with a value that cannot be read does not hold.
  bool holds(const ArgumentMoment& at, const guest_linux::Kernel& kernel) const;

 private:
  friend class PlaceCompiler;
  enum class Relation : std::uint8_t { Equal, Unequal, Less, Greater };
  struct Comparison {
    PlaceValue left, right;
    Relation relation = Relation::Equal;
  };
  bool holds(const Comparison& comparison, const ArgumentMoment& at,
             const guest_linux::Kernel& kernel) const;

  std::vector<std::vector<Comparison>> groups_;
};

/// Works expressions out for one kernel and one place. Errors (Unsupported) name what this kernel
/// lacks; an expression that is none is a mistake of ours and ends the program.
class PlaceCompiler {
 public:
  enum class End : std::uint8_t { Entry, Return, TrapFilter };
  /// Words of what an arrival works out: after those of its tracepoint or counter.
  static constexpr std::uint32_t kElapsed = 6, kFirstStart = 7;
  PlaceCompiler(const guest_linux::Kernel& kernel, End end)
      : kernel_(kernel), types_(kernel.types()), end_(end) {}

  Result<PlaceValue> value(std::string_view text);
  Result<PlaceCondition> condition(std::string_view text);
  /// A value of a type, as C writes it ("struct sock *", "int"), that those after it can name.
  struct Native {
    PlaceValue value;
    TypeId type;
  };
  Result<Native> define(std::string_view name, std::string_view type, std::string_view text);

 private:
  Result<PlaceValue::Term> term(std::string_view text);
  Result<std::optional<TypeId>> root(std::string_view name, PlaceValue::Term& term) const;
  Result<void> members(std::string_view text, TypeId type, PlaceValue::Term& term) const;
  Result<PlaceCondition::Comparison> comparison(std::string_view text);

  const guest_linux::Kernel& kernel_;
  const TypeGraph& types_;
  const End end_;
  std::map<std::string, Native, std::less<>> named_;
};

/// The type that C writes so: a name, "struct NAME", or a pointer to one of these. The kernel's
/// graph cannot get new types, so a pointer is found if the kernel uses one.
std::optional<TypeId> find_written_type(const TypeGraph& types, std::string_view text);

}  // namespace ringside::providers
