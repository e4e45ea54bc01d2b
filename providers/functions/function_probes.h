// The places and the arguments of a function's entry and return. Used for the probes of fbt, and
// for those of other providers at the same places.
#pragma once

#include <optional>
#include <vector>

#include "providers/dispatch/binding.h"
#include "providers/functions/bare_functions.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// A site of a probe, and what the probe has to do with it; the probe's id is not filled in.
struct BoundSite {
  ProbeSite site;
  Binding binding;
  std::optional<GuestVirt> jumps_to{};  // of a way out that is a jump to a known place
};

/// Errors (Unsupported) say why there is no such probe. A function without an ftrace site has one
/// only where BareFunctions says so.
class FunctionProbes {
 public:
  /// `text` is kernel text without breakpoints of ours. All must outlive it.
  FunctionProbes(const GuestReader& text, const guest_linux::Kernel& kernel, ProbePoints& points)
      : text_(text), kernel_(kernel), points_(points), bare_(text, kernel) {}

  Result<std::vector<BoundSite>> entry(const guest_linux::Symbol& function);
  /// One for each way out.
  Result<std::vector<BoundSite>> exits(const guest_linux::Symbol& function);
  bool has_ftrace_site(const guest_linux::Symbol& function) const;

 private:
  Result<GuestVirt> entry_of(const guest_linux::Symbol& function);

  const GuestReader& text_;
  const guest_linux::Kernel& kernel_;
  ProbePoints& points_;
  BareFunctions bare_;
};

}  // namespace ringside::providers
