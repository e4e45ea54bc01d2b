// The budget of traps: how much of a guest's time they may take, and which probes to take out if
// they take more. Pure: the caller reads the clock and the counters (budget_enforcer.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "providers/dispatch/dispatch_table.h"
#include "providers/dispatch/trap_tally.h"

namespace ringside::providers {

struct Budget {
  std::optional<std::uint64_t> max_rate{};  // traps a second, of all vCPUs together
  std::optional<unsigned> max_slow{};       // percent of the time of the vCPU that traps most

  bool limits() const { return max_rate || max_slow.value_or(100) < 100; }
};

/// Traps beyond the budget, over one window.
struct Overrun {
  double rate = 0;       // traps a second
  double slow = 0;       // the share of its time that the vCPU which traps most has waited, 0 to 1
  bool by_rate = false;  // of the two, which is over budget
  double kept = 0;       // the share of the traps that fits, 0 to 1
};

/// Checks the counters now and then. Traps are too many if they are over budget in two checks in a
/// row: one burst does not count.
class BudgetKeeper {
 public:
  explicit BudgetKeeper(const Budget& budget) : budget_(budget) {}

  enum class Verdict : std::uint8_t { Fine, Suspicious, TooMuch };
  /// `now` in ns; `cpus` as TrapTally counts, since tracing began.
  Verdict look(std::uint64_t now, std::vector<CpuTraps> cpus);
  /// After TooMuch.
  const Overrun& overrun() const { return overrun_; }
  /// Begins anew: something was taken out.
  void forget();

 private:
  std::optional<Overrun> judge(double seconds, std::span<const CpuTraps> cpus) const;

  const Budget budget_;
  std::optional<std::uint64_t> looked_;
  std::vector<CpuTraps> before_;
  Overrun overrun_;
  bool suspicious_ = false;
};

/// One line for the user: which limit was exceeded, the names of the first probes that were taken
/// out, their `count`, and the option that changes the limit.
std::string describe(const Budget& budget, const Overrun& overrun,
                     std::span<const std::string> names, std::size_t count);

/// The places to take out so that at most the share `kept` of all hits is left: the hottest first,
/// and at least `least` of them if there are that many.
std::vector<DispatchTable::Hits> hottest(std::vector<DispatchTable::Hits> places, double kept,
                                         std::size_t least);

}  // namespace ringside::providers
