// The rate of a guest's TSC: the host's, or, if a hypervisor scales it, the rate that the guest's
// kernel measured. That measured rate is often some percent wrong if the guest was busy meanwhile.
// So traps decide between the two: the host knows the least and the most time that can lie between
// two traps.
// Pure: the caller reads the TSCs. Threads: host_ticks() any, the rest one at a time.
// Fire context: yes.
#pragma once

#include <cstdint>
#include <optional>

namespace ringside::providers {

__extension__ using Uint128 = unsigned __int128;

/// The rate that the guest's kernel says its TSC has (tsc_khz), unless no TSC has such a rate.
std::optional<std::uint64_t> plausible_hertz(std::optional<std::uint32_t> guest_khz);

class TscScale {
 public:
  enum class Rate : std::uint64_t { Hosts, Guests };

  TscScale(std::uint64_t host_hertz, std::optional<std::uint64_t> guest_hertz)
      : host_hertz_(host_hertz), guest_hertz_(guest_hertz) {}

  /// Ticks of a TSC of this rate in those of the host's.
  std::uint64_t host_ticks(std::uint64_t ticks, Rate rate) const {
    if (rate == Rate::Hosts) return ticks;
    return static_cast<std::uint64_t>(static_cast<Uint128>(ticks) * host_hertz_ / *guest_hertz_);
  }
  /// The guest's ticks for one of the host's.
  double factor(Rate rate) const {
    if (rate == Rate::Hosts) return 1;
    return static_cast<double>(*guest_hertz_) / static_cast<double>(host_hertz_);
  }

  /// A trap by the guest's TSC, which was between two of the host's.
  struct Trap {
    std::uint64_t guest = 0, after = 0, before = 0;
  };
  /// Whether the trap shows that the TSC cannot have this rate, but the other one.
  bool refutes(const Trap& trap, Rate rate);
  /// It may have been set, or have stood still: what has been seen by now says nothing any more.
  void forget() { since_.reset(); }

 private:
  bool fits(const Trap& trap, Rate rate) const;

  std::uint64_t host_hertz_;
  std::optional<std::uint64_t> guest_hertz_;
  std::optional<Trap> since_;
};

}  // namespace ringside::providers
