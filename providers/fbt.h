// The provider `fbt`: entry and return of every function of the kernel and its modules where an
// int3 can stand safely. Module "vmlinux" is the kernel itself. Several functions of one name
// (statics of different files) are all published.
// entry stands on the first instruction after the ftrace site, return on every way out; a function
// is given a return probe only when every one of its ways out can be trapped, so that each entry
// has its return.
// Filters by name before it decodes anything: patterns decide how much text is read.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/entry_return_provider.h"
#include "providers/fire/binding.h"
#include "providers/tracepoint/function_sites.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class FbtProvider final : public EntryReturnProvider {
 public:
  /// `text` is kernel text without breakpoints of ours. All must outlive it. Ids follow the symbols
  /// that `kernel` has now.
  FbtProvider(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points);

  ProbeArguments arguments(const Probe& probe) override;

 private:
  std::size_t functions() const override { return symbols_; }
  dif::ProbeDescription function_name(std::size_t function) const override;
  void for_each_function(const dif::ProbeDescription& pattern,
                         const std::function<void(std::size_t)>& visit) const override;
  Result<std::vector<Stand>> find_stands(Place place) override;

  const guest_linux::Symbol* symbol_of(Place place) const;
  Result<GuestVirt> entry_of(const guest_linux::Symbol& function) const;
  Result<std::vector<Stand>> entry_stands(const guest_linux::Symbol& function);
  Result<std::vector<Stand>> return_stands(const guest_linux::Symbol& function);

  guest_linux::Kernel& kernel_;
  const GuestReader& text_;
  const std::size_t symbols_;
};

}  // namespace ringside::providers
