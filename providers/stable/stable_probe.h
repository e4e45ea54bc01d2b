// The form of a stable probe's row: the name and arguments that dtrace documents, and the place in
// the Linux kernel where the same thing happens. stable_tables.h has the rows; stable_provider.h
// makes probes of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "dif/program/stability.h"

namespace ringside::providers {

/// The first argument of the native's type.
inline constexpr std::string_view kByType = "arg?";

/// A value that the place has: arg0, arg1... of the probe.
struct NativeValue {
  std::string_view type;  // "struct task_struct *", "int": how programs see it without translation
  std::string_view name;
  /// An expression, place_value.h; of a tracepoint, whose arguments come and go, kByType, too. Or
  /// several with a bar between: the first that this kernel has the arguments and members for.
  std::string_view value;
  /// Makes what is documented of the expression's value, where no expression can; null: it is that.
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

/// Of a probe that fires at the end of something: where that began. Such a probe fires only where
/// the beginning was seen; its natives can name `elapsed`, the nanoseconds since then by the host's
/// clock, and `start0`, `start1`..., which are what the beginning's natives were.
struct StartPlace {
  /// Which end belongs to it: of the same call of a function, or of the same task and object, which
  /// is native 0 of both.
  enum class Of : std::uint8_t { Call, TaskAndObject };
  Of of = Of::Call;
  PlaceKind kind = PlaceKind::Entry;
  std::string_view place{};                // of TaskAndObject; a call begins at the probe's own
  std::span<const NativeValue> natives{};  // three at most
  std::string_view condition{};            // of several the first counts
  /// Where this holds instead, what has begun comes to no end that fires. Empty: never.
  std::string_view spoilt_when{};
};

struct StableProbe {
  std::string_view name;
  PlaceKind kind = PlaceKind::Entry;
  /// The function, or several with a bar between where kernels call it otherwise: the first that
  /// is there counts. A function is also meant by its .isra and .constprop forms.
  std::string_view place;
  std::span<const NativeValue> natives{};
  std::span<const StableArgument> arguments{};
  /// It fires only when this holds: a condition over the natives, place_value.h. Empty: always.
  std::string_view condition{};
  const StartPlace* start = nullptr;  // null: it needs none
  /// Values that the natives and the condition are made of, and that programs do not see.
  std::span<const NativeValue> parts{};
  /// A function that some kernels have in its callers instead, where the probe would miss it: they
  /// have no such probe. Empty: none.
  std::string_view unless_inlined{};
  /// Functions, by how their names begin, that come by the tracepoint, and by its beginning, for
  /// something else alone: no probe stands there. Empty: none.
  std::span<const std::string_view> never_in{};
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
