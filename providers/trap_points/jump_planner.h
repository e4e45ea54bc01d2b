// Plans jumps in place of int3s: makes their records, tells which jumps may stand at this moment
// and who is in the way, and turns jumps back into int3s when another trap point needs the place.
// Used by the trap point table. Does not: write jumps, or prove that the text allows one
// (jump_run.h).
// Threads: the thread that adds trap points, with the table's lock; has_displaced() and
// keep_in_place() on any thread with that lock.
// Fire context: no.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "providers/trap_points/armed_text.h"
#include "providers/trap_points/displaced_code.h"
#include "providers/trap_points/jump_run.h"
#include "providers/trap_points/probed_text.h"
#include "providers/trap_points/trap_point_store.h"
#include "providers/trap_points/trap_point_types.h"
#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/hardware_breakpoints.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/shim/trap_table.h"

namespace ringside::providers {

/// If a guest has set more hardware breakpoints than this, no place becomes a jump any more.
inline constexpr std::size_t kMostInPlace = 4096;

/// Instructions that must run in their own place, because the guest has, or has had, a hardware
/// breakpoint there. No jump may displace them. Does not: take away jumps that stand. Threads: as
/// JumpPlanner.
class KeptInPlace {
 public:
  /// `kernel` must outlive it.
  explicit KeptInPlace(const guest_linux::Kernel& kernel) : kernel_(kernel), hardware_(kernel) {}

  void add(GuestVirt at);
  /// Adds those that are set now.
  void look(const GuestReader& live);
  /// Whether one of them lies in an instruction that the point's jump displaces.
  bool forbids(const TrapPoint& point) const;

 private:
  const guest_linux::Kernel& kernel_;
  const guest_linux::HardwareBreakpoints hardware_;
  std::vector<GuestVirt> places_;
};

class JumpPlanner {
 public:
  /// All must outlive it.
  struct Parts {
    vmm::TrapTable& shim;
    ProbedText& text;
    TrapPointStore& store;
    DisplacedCode& displaced;
    ArmedText& armed;
  };

  JumpPlanner(const guest_linux::Kernel& kernel, const Parts& parts);

  /// Until then there are no jumps.
  void use(FindStanding find, IsInside is_inside);
  /// Makes the records of jumps that may come to stand.
  void prepare();

  /// Jumps over what is coming become int3s, whose records then drain.
  Result<void> make_way(vmm::PausedMachine& machine);
  /// Turns jumps that are in the way into int3s, and finds out who stands where new jumps are
  /// planned. Error: that is not known.
  Result<void> find_standing(vmm::PausedMachine& machine);
  /// Whether its jump may be written in this pause, after find_standing(). Only as an int3 can it
  /// share its five bytes with others.
  bool may_jump(const TrapPoint& point) const;
  /// Who stands where was good for one pause.
  void end_pause();

  /// Whether one that stands has displaced the instruction at `at`.
  bool has_displaced(GuestVirt at) const { return jump_over(at).has_value(); }
  /// Such a jump becomes an int3, and none displaces that any more.
  Result<void> keep_in_place(vmm::PausedMachine& machine, GuestVirt at);

 private:
  using Id = TrapPointStore::Id;
  using AddressRange = guest_linux::Kernel::AddressRange;

  const Jump* jump_for(const TrapPoint& point);
  AddressRange kept_clear(const TrapPoint& point) const;
  std::optional<Id> jump_over(GuestVirt at) const;
  std::vector<Id> in_the_way() const;
  Result<void> check_drained(vmm::PausedMachine& machine, std::span<const GuestVirt> standing);
  Result<void> narrow(vmm::PausedMachine& machine, std::vector<Id> ids);

  const Parts parts_;
  JumpRunFinder runs_;
  KeptInPlace in_place_;
  std::deque<Jump> jumps_;      // points know them by address
  FindStanding find_standing_;  // none: no jumps
  IsInside is_inside_;
  std::optional<std::vector<GuestVirt>> standing_;  // in this pause
  std::vector<AddressRange> draining_;              // records of jumps that arming has narrowed
};

}  // namespace ringside::providers
