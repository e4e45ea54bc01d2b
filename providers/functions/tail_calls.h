// Functions that end in a jump to another one, as a compiler writes `return other(...)`: where such
// a function really returns. Its return probe waits at the jump (Role::Waits) and fires at every
// way out of those that it may have jumped to (Role::Ends), as the jump has left them its own
// return address.
// A jump is not followed where nobody knows where it leads (through a register), where no probe can
// stand at a return of what it leads to, or where it leads through too much. Nor is one of a
// function that returns nothing to one that the kernel exports to its modules, as kfree() or
// mutex_unlock(): half of the kernel calls those, and each call would trap. There the probe fires
// at the jump itself, as the last that is seen of the function.
// Used by fbt.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "providers/functions/function_probes.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class TailCalls {
 public:
  /// All must outlive it.
  TailCalls(FunctionProbes& functions, const guest_linux::Kernel& kernel, ProbePoints& points)
      : functions_(functions), kernel_(kernel), points_(points) {}

  /// `sites` are the ways out of this function: those that are followed wait, and where they end is
  /// added.
  void follow(const guest_linux::Symbol& function, std::vector<BoundSite>& sites);
  /// In words, for -l -v: "jumps to vmlinux`ksys_read at +0x14, fires where that returns"; empty
  /// where all ways out are returns.
  std::string describe(const guest_linux::Symbol& function, const std::vector<BoundSite>& sites);

 private:
  /// All that a jump leads to.
  struct Route {
    bool has_value = true;  // of the function that it is of
    std::set<GuestVirt> functions;
    std::vector<BoundSite> ends;
  };
  const std::vector<BoundSite>* exits_of(GuestVirt function);
  bool returns_nothing(const guest_linux::Symbol& function);
  bool is_exported(GuestVirt function) const;
  bool extend(Route& route, const BoundSite& jump);

  FunctionProbes& functions_;
  const guest_linux::Kernel& kernel_;
  ProbePoints& points_;
  // By address; empty: they cannot be probed. Of this generation of the points.
  std::unordered_map<std::uint64_t, std::vector<BoundSite>> exits_;
  std::uint64_t generation_ = 0;
  std::set<GuestVirt> return_nothing_;  // as long as that was known
  std::set<TailCall> calls_;            // bindings point at them
};

}  // namespace ringside::providers
