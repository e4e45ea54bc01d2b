// Finds where functions really return that end in a jump to another function, which is how a
// compiler writes `return other(...)`. The return probe waits at the jump (Role::Waits). It fires
// at every way out of the functions that the jump may lead to (Role::Ends), because they return to
// the first function's caller. Some jumps are not followed: through a register, to a function whose
// returns cannot be probed, or through too many functions. A jump from a function without a result
// to one that the kernel exports to its modules, such as kfree() or mutex_unlock(), is not followed
// either: half of the kernel calls those, and each call would trap. If a jump is not followed, the
// probe fires at the jump itself.
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
