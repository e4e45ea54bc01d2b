// One row of the tables of stable probes: the name and arguments that dtrace documents, and the
// place in the Linux kernel where the same thing happens. stable_tables.h has the rows;
// stable_provider.h makes probes of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "dif/program/stability.h"

namespace ringside::providers {

/// Stands for the tracepoint's first argument that has the native's type.
inline constexpr std::string_view kByType = "arg?";

/// A value at the place: arg0, arg1... of the probe.
struct NativeValue {
  std::string_view type;  // "struct task_struct *", "int": how programs see it without translation
  std::string_view name;
  /// An expression (place_value.h). For a tracepoint, whose arguments differ between kernels, it
  /// may be kByType. Alternatives have a bar between them: the first counts whose arguments and
  /// members this kernel has.
  std::string_view value;
  /// Converts the expression's value to the documented one, if no expression can. Null: no
  /// conversion.
  std::uint64_t (*shape)(std::uint64_t) = nullptr;
};

/// args[n]: `native`, by number, translated to `type` by D's libraries.
struct StableArgument {
  std::string_view type;
  unsigned native = 0;
};

enum class PlaceKind : std::uint8_t {
  Entry,       // of a function: arg0, arg1... are its parameters
  Return,      // from it: `result` is what it returns
  OwnReturn,   // the same, but where it jumps into another function, which returns for it
  Tracepoint,  // a static tracepoint of the kernel
  Counter,     // where the kernel counts: arg0 is what it adds, arg1 the counter (counter_sites.h)
  Nowhere,     // documented, and not there: `place` says why and what comes nearest
};

/// For a probe that fires at the end of something: the place where it begins. The probe fires only
/// if the beginning was seen. Its natives can use `elapsed`, the nanoseconds since the beginning by
/// the host's clock, and `start0`, `start1`..., the values of the beginning's natives.
struct StartPlace {
  /// How a beginning and its end are matched: by the same call of a function, or by the same task
  /// and object. The object is native 0 of both places.
  enum class Of : std::uint8_t { Call, TaskAndObject };
  Of of = Of::Call;
  PlaceKind kind = PlaceKind::Entry;
  std::string_view place{};                // of TaskAndObject; a call begins at the probe's own
  std::span<const NativeValue> natives{};  // three at most
  std::string_view condition{};            // of several the first counts
  /// If this condition holds at the beginning, the end does not fire. Empty: it never holds.
  std::string_view spoilt_when{};
};

/// Kernels that a row is for. A real-time kernel (PREEMPT_RT) makes all locks that sleep of one
/// other kind.
enum class KernelForm : std::uint8_t { Any, Usual, RealTime };

struct StableProbe {
  std::string_view name;
  PlaceKind kind = PlaceKind::Entry;
  /// The function. If its name differs between kernels, alternatives have a bar between them: the
  /// first that exists counts. The name also finds its .isra and .constprop forms.
  std::string_view place;
  std::span<const NativeValue> natives{};
  std::span<const StableArgument> arguments{};
  /// The probe fires only if this condition over the natives holds (place_value.h). Empty: always.
  std::string_view condition{};
  const StartPlace* start = nullptr;  // null: it needs none
  /// Values for the natives and the condition to use. Programs do not see them.
  std::span<const NativeValue> parts{};
  /// A function that some kernels have inlined into its callers. There the probe would miss it, so
  /// those kernels have no such probe. Empty: none.
  std::string_view unless_inlined{};
  /// Prefixes of function names. Functions with such a name pass the tracepoint, and its beginning,
  /// only for something else: no probe stands in them. Empty: none.
  std::span<const std::string_view> never_in{};
  /// The same of functions that these call: some are compiled several times under one name.
  std::span<const std::string_view> never_called_by{};
  KernelForm kernels = KernelForm::Any;  // on others nobody hears of this row
  /// Where the function is no function of its own, the probes of its callers tell the same.
  bool or_in_callers = false;
};

/// One provider's rows.
struct StableTable {
  std::string_view provider;
  std::span<const StableProbe> probes;
};

/// The stability that the Dynamic Tracing Guide promises of proc, sched, io, ip, tcp and udp
/// ("Stability").
inline constexpr dif::ProviderAttributes kStableAttributes = [] {
  using enum dif::Stability;
  using enum dif::DependencyClass;
  return dif::ProviderAttributes{.provider = {Evolving, Evolving, Isa},
                                 .module = {Private, Private, Unknown},
                                 .function = {Private, Private, Unknown},
                                 .name = {Evolving, Evolving, Isa},
                                 .arguments = {Evolving, Evolving, Isa}};
}();

}  // namespace ringside::providers
