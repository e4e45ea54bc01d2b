// Finds the instructions that add to one of the kernel's own counters. A counter is a word of 8
// bytes for each CPU. Each time it grows, one instruction adds to it, so probes on all these
// instructions fire exactly as often as the counter grows. The whole text is searched for them,
// once, when a program asks for such a probe.
//   SYMBOL[ENUMERATOR]               an element of a per-CPU array: "vm_event_states[PGFAULT]"
//   SYMBOL.MEMBER[ENUMERATOR]        of the per-CPU array that a member of a struct net leads to:
//                                    "init_net.mib.tcp_statistics[TCP_MIB_ACTIVEOPENS]"
//   [A|B]                            if the name differs between kernels: the first that exists
// An instruction that adds to an address in registers may belong to any counter. A trap there
// counts if the address is this counter's at that moment. Debian's 6.1 and 6.12 have some 40 such
// instructions for a counter of init_net.
// Used by StableProvider. Fire context: only the arrivals that it makes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "disasm/decoder.h"
#include "providers/context/binding.h"
#include "providers/functions/function_probes.h"

namespace ringside::providers {

class CounterSites {
 public:
  /// `text` is kernel text without breakpoints of ours. All must outlive it.
  CounterSites(const GuestReader& text, const guest_linux::Kernel& kernel, ProbePoints& points)
      : text_(text), kernel_(kernel), points_(points) {}

  /// The places where the counter is increased. Each site's arrival computes two words: the number
  /// that is added, and the address of this CPU's counter. Arrivals live as long as this.
  /// Error (NotFound): the kernel counts no such thing; Unsupported: a probe cannot stand at one of
  /// the places.
  Result<std::vector<BoundSite>> sites_of(std::string_view counter);
  /// Errors as of sites_of(), but for the places. Asked while types are there;
  /// sites_of() may be asked later, too.
  Result<void> check(std::string_view counter);

 private:
  struct Counter {
    std::uint64_t at = 0;        // from the CPU's per-CPU base
    std::uint64_t array = 0;     // where the array begins
    bool is_by_pointer = false;  // code has the array's place in a register
  };
  /// The bytes may be inside of another instruction: known when it is looked at.
  enum class Boundary : std::uint8_t { Unknown, Instruction, None, NotListed };
  struct Site {
    GuestVirt at;
    disasm::Operation adds;
    Boundary boundary = Boundary::Unknown;
  };
  class Adds final : public TrapFilter {
   public:
    Adds(const disasm::Operation& adds, std::uint64_t counter) : adds_(adds), counter_(counter) {}
    bool fires(const ArgumentMoment& at, FilterValues& out) const override;
    RecordedFilter recorded() const override { return {}; }  // registers are enough

   private:
    const disasm::Operation adds_;
    const std::uint64_t counter_;  // from the per-CPU base on
  };

  Result<Counter> counter(std::string_view name);
  Result<Counter> read_counter(std::string_view name) const;
  Result<std::uint64_t> array_by_pointer(const guest_linux::Symbol& symbol,
                                         std::string_view members) const;
  static bool may_add_to(const Site& site, const Counter& counter);
  Boundary boundary_at(GuestVirt at) const;
  std::vector<Site>& sites();
  void find_sites(const guest_linux::Module& module);

  const GuestReader& text_;
  const guest_linux::Kernel& kernel_;
  ProbePoints& points_;
  std::map<std::string, Counter, std::less<>> counters_;
  std::optional<std::vector<Site>> sites_;
  std::uint64_t generation_ = 0;  // that the sites are of
  std::deque<Adds> arrivals_;     // bindings lead to them
};

}  // namespace ringside::providers
