// The provider `fbt`: entry and return of every function of the kernel and its modules where an
// int3 can stand safely. Module "vmlinux" is the kernel itself. Several functions of one name
// (statics of different files) are all published.
// If the kernel has a function only in a form that the compiler made of it (foo.isra.0), its probes
// have both names. The source's name serves only descriptions that do not match the other name, so
// that no description finds a function twice. entry stands on the first instruction after the
// ftrace site, return on every way out. A function has a return probe only if all of its ways out
// can be trapped, so that each entry has its return. A function that ends in a jump to another one
// returns where that one returns (tail_calls.h). Filters by name before it decodes anything:
// patterns decide how much text is read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "providers/context/binding.h"
#include "providers/functions/entry_return_provider.h"
#include "providers/functions/function_names.h"
#include "providers/functions/function_probes.h"
#include "providers/functions/tail_calls.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class FbtProvider final : public EntryReturnProvider {
 public:
  /// `text` is kernel text without breakpoints of ours. All must outlive it. Ids follow the symbols
  /// that `kernel` has now; those of modules that come later follow, in the order of their
  /// coming.
  FbtProvider(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points);

  ProbeArguments arguments(const Probe& probe) override;
  std::string detail(const Probe& probe) override;
  Result<void> admit(std::uint16_t module) override;

  /// So many functions of modules that come later have room, whatever their number.
  static constexpr std::size_t kLateFunctions = 1 << 16;

 private:
  std::size_t functions() const override { return first_late() + kLateFunctions; }
  dif::ProbeDescription function_name(std::size_t function) const override;
  void for_each_function(const dif::ProbeDescription& pattern,
                         const std::function<void(std::size_t)>& visit) const override;
  void for_each_late_function(std::uint16_t module, const dif::ProbeDescription& pattern,
                              const std::function<void(std::size_t)>& visit) const override;
  Result<std::vector<BoundSite>> find_sites(FunctionEnd place) override;
  void complete(FunctionEnd place, std::vector<BoundSite>& sites) override;

  /// A function of a module that came later.
  struct Late {
    const guest_linux::Symbol* symbol = nullptr;
    std::string source{};  // the name of the source's that it is a form of; empty: its own
  };
  std::size_t first_late() const { return symbols_ + sources_.functions().size(); }
  /// Null for an index that no function has.
  const Late* late(std::size_t function) const;
  std::string_view name_of(std::size_t function) const;
  const guest_linux::Symbol* symbol_at(std::size_t function) const;
  const guest_linux::Symbol* symbol_of(FunctionEnd place) const {
    return symbol_at(place.function);
  }

  guest_linux::Kernel& kernel_;
  FunctionProbes functions_;
  TailCalls tail_calls_;
  const std::size_t symbols_;  // functions from there on are sources_'
  const SourceNames sources_;
  std::vector<Late> late_;
  struct LateModule {
    std::size_t first = 0, count = 0;  // in late_
  };
  std::map<std::uint16_t, LateModule> late_modules_;  // by index
};

}  // namespace ringside::providers
