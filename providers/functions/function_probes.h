// The places and the arguments of a function's entry and return. Used for the probes of fbt, and
// for those of other providers at the same places.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "providers/context/binding.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// Finds functions without an ftrace site that can still have probes. Some 12,000 functions have no
/// such site: most of them must not be probed, or are not entered by a call. But a probe's trap
/// runs none of the kernel's code. So functions that the kernel excludes only because its own
/// tracer uses them (the ring buffer, clocks, notrace) can be probed, if
///   - BTF has its prototype, with a parameter or a result: then it is C. Assembler has its own
///     ways in and out, and the kernel copies some of it (the trampolines of ftrace and kprobes);
///   - the kernel lets its kprobes into it (NOKPROBE_SYMBOL);
///   - its text may have breakpoints, which the trap point table knows.
class BareFunctions {
 public:
  /// Both must outlive it.
  BareFunctions(const GuestReader& text, const guest_linux::Kernel& kernel)
      : text_(text), kernel_(kernel) {}

  /// The first instruction that its callers run, after a landing pad for them. Unsupported: it can
  /// have no probe. Once found good, a function stays so when the kernel's types are gone.
  Result<GuestVirt> entry(const guest_linux::Symbol& function);

 private:
  using Ranges = std::vector<guest_linux::Kernel::AddressRange>;

  bool is_of_c(const guest_linux::Symbol& function) const;
  Result<void> check(const guest_linux::Symbol& function);
  const Result<Ranges>& blacklist();

  const GuestReader& text_;
  const guest_linux::Kernel& kernel_;
  std::optional<Result<Ranges>> blacklist_;  // once it was asked for
  std::unordered_set<GuestVirt> good_;
};

/// A site of a probe, and what the probe has to do with it; the probe's id is not filled in.
struct BoundSite {
  ProbeSite site;
  Binding binding;
  std::optional<GuestVirt> jumps_to{};  // of a way out that is a jump to a known place
};

/// Whether a value of this type is passed as one word, so that arg<n> is the n-th parameter. A
/// parameter that is not (a structure, a floating number, __int128) has no type in args[], nor have
/// those after it.
bool takes_one_word(const TypeGraph& types, TypeId type);

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
