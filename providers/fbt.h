// The provider `fbt`: entry and return of every function of the kernel and its modules where an
// int3 can stand safely. Module "vmlinux" is the kernel itself. Several functions of one name
// (statics of different files) are all published.
// entry stands on the first instruction after the ftrace site, return on every way out; a function
// is given a return probe only when every one of its ways out can be trapped, so that each entry
// has its return.
// Filters by name before it decodes anything: patterns decide how much text is read.
// Fire context: no.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "providers/binding.h"
#include "providers/provider.h"
#include "providers/tracepoint/function_sites.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class FbtProvider final : public Provider {
 public:
  /// `text` is kernel text without breakpoints of ours. All must outlive it. Ids follow the symbols
  /// that `kernel` has now.
  FbtProvider(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points);

  std::string_view name() const override { return "fbt"; }
  void set_first_id(std::uint32_t first) override { first_ = first; }
  std::uint32_t id_count() const override { return static_cast<std::uint32_t>(symbols_ * 2); }
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override;
  ProbeArguments arguments(const Probe& probe) override;
  dif::ProviderAttributes attributes() const override;
  Result<void> enable(const Probe& probe) override;

 private:
  enum class End : std::uint8_t { Entry, Return };
  struct Wanted {
    bool entry = false, leave = false;
    std::vector<bool> modules;  // by module index
    const dif::ProbeDescription* pattern = nullptr;
    bool exact = false;  // the function's name has no metacharacter
  };

  bool wants(const Wanted& wanted, const guest_linux::Symbol& symbol) const;
  /// Calls visit(index, end) for all that the pattern names, whether it can be probed or not.
  template <class Visit>
  void for_each_named(const dif::ProbeDescription& pattern, Visit visit);
  /// Why there is no such probe; empty when there is.
  Result<void> check(const guest_linux::Symbol& function, End end);
  const guest_linux::Symbol* symbol_of(dif::ProbeId id, End& end) const;
  Probe probe(std::size_t index, End end) const;
  Result<GuestVirt> entry_of(const guest_linux::Symbol& function) const;
  Result<GuestVirt> safe_entry(const guest_linux::Symbol& function);
  Result<std::vector<ReturnSite>> safe_returns(const guest_linux::Symbol& function);

  guest_linux::Kernel& kernel_;
  ProbePoints& points_;
  const GuestReader& text_;
  const std::size_t symbols_;
  std::uint32_t first_ = 1;
  /// What listing found, so that enabling needs not decode again. By the function's address.
  std::unordered_map<std::uint64_t, std::vector<ReturnSite>> returns_;
  std::unordered_set<std::uint32_t> enabled_;
};

}  // namespace ringside::providers
