// The provider `sdt`: a probe for each static tracepoint of the kernel and its modules,
// sdt:GROUP::TRACEPOINT, such as sdt:sched::sched_switch. Nothing is enabled in the guest: the
// sites stay nops. A probe stands beside them (sdt/site_placement.h), and its arguments are
// computed on the host (sdt/slice.h). All sites of a tracepoint are one probe. Probes are made on
// demand: only for a description that names this provider, and only for the tracepoints that match
// it. If no site of a tracepoint can be probed, the tracepoint is refused with the reason. detail()
// tells which sites of a published tracepoint are not probed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "providers/context/binding.h"
#include "providers/functions/function_probes.h"
#include "providers/provider.h"
#include "providers/sdt/site_watch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/text/static_tracepoints.h"

namespace ringside::providers {

class SdtProvider final : public Provider {
 public:
  /// As of FbtProvider.
  SdtProvider(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points);

  std::uint32_t id_count() const override { return guest_linux::kMostStaticTracepoints; }
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  /// Sites that cannot be probed, of tracepoints of which others are.
  void gaps(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override;
  ProbeArguments arguments(const Probe& probe) override;
  /// For other probes that mean a tracepoint by its name: where they stand, at all of its sites.
  /// Each call gives arrivals of its own, for one probe; they live as long as this. Sites in
  /// functions whose names begin with one of `never_in` are left out, and those in functions that
  /// functions of such a name of `never_called_by` call. Error (Unsupported): there is no such
  /// tracepoint, or another one of its sites cannot be probed.
  Result<std::vector<BoundSite>> bound_sites(std::string_view tracepoint,
                                             std::span<const std::string> never_in = {},
                                             std::span<const std::string> never_called_by = {});
  /// By the kernel's types; 0 for one that they do not know.
  std::size_t parameter_count(const std::string& tracepoint) const {
    return parameters(tracepoint).size();
  }
  /// The same with their types, up to the first argument that cannot be read.
  std::span<const Parameter> prototype_arguments(std::string_view tracepoint) const;
  /// Its sites and how it stands for each; why it does not for some.
  std::string detail(const Probe& probe) override;
  Result<void> enable(const Probe& probe) override;
  bool is_enabled(dif::ProbeId id) const override { return enabled_.contains(id.value); }
  void note_disabled(dif::ProbeId id) override { enabled_.erase(id.value); }

 private:
  using Index = std::uint32_t;

  /// A site, and how its probe stands for it: places that are examined and what they lead to.
  struct Site {
    GuestVirt at;
    SitePlacement::Where where = SitePlacement::Where::After;
    std::vector<BoundSite> leads;
    std::string trouble{};   // why there are none
    bool only_asks = false;  // it is never an event, and needs none
  };
  struct Tracepoint {
    guest_linux::StaticTracepoint known;
    std::vector<SliceParameter> parameters;  // from the types, which are gone once tracing runs
    std::vector<GuestVirt> places;           // its labels
    std::string function;                    // which all of them are in; else empty
    std::optional<std::vector<Site>> sites{};
    bool is_usable() const;
  };

  Result<void> read();
  void find_places();
  std::optional<Index> find(dif::ProbeId id);
  std::string function_of(const std::vector<GuestVirt>& places) const;
  std::vector<Index> matching(const dif::ProbeDescription& pattern) const;
  void refuse_misplaced(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) const;
  dif::ProbeDescription name_of(const Tracepoint& tracepoint) const;
  /// Looks at the sites of these, function by function.
  void examine(const std::vector<Index>& wanted);
  bool only_asks(const Tracepoint& tracepoint, const FunctionFlow& flow) const;
  Site examine_site(const Tracepoint& tracepoint, GuestVirt at, const FunctionFlow& flow);
  Result<Site> placed_site(const Tracepoint& tracepoint, GuestVirt at, const FunctionFlow& flow);
  Result<Site> place(GuestVirt at, const Slice& slice, const SitePlacement& how);
  std::unordered_set<GuestVirt> called_by(std::span<const std::string> beginnings) const;
  /// The sites of all of them; a place that several share appears once.
  static std::vector<BoundSite> bound_sites_of(const std::vector<Site>& sites);
  std::string reason(const Tracepoint& tracepoint) const;
  std::optional<TypeId> prototype(const std::string& tracepoint) const;
  std::vector<SliceParameter> parameters(const std::string& tracepoint) const;

  const GuestReader& text_;
  guest_linux::Kernel& kernel_;
  ProbePoints& points_;
  const std::uint64_t stack_bytes_;
  const CpuNumber cpu_;
  bool is_read_ = false;
  std::vector<Tracepoint> tracepoints_;
  std::uint64_t generation_ = 0;   // that the sites are of
  std::deque<SiteWatch> watches_;  // bindings lead to them
  std::unordered_set<std::uint32_t> enabled_;
};

}  // namespace ringside::providers
