// The provider `vm`: what only the host sees of a virtual machine. vm::exit:REASON, vm::pio:in and
// out, vm::mmio:read and write, vm::msr:rd and wr, vm::cpuid, vm:hlt:hlt, vm::inject, vm::dirty.
// Probes whose events this machine or this host cannot see are refused with the reason. For users:
// docs/vm-provider.md.
// The module is `vm`, too, so that vm::cpuid finds a probe: in a description with two colons the
// first word is the module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "providers/provider.h"
#include "providers/vm/vm_dispatch.h"
#include "vmm/vcpu_exits.h"

namespace ringside::providers {

class VmProvider final : public Provider {
 public:
  /// `exits` is null where the vCPUs run in another process: then every probe is refused. Types of
  /// args[] are looked up in `types`. Both must outlive the provider.
  VmProvider(const vmm::VcpuExits* exits, const TypeGraph& types);

  std::uint32_t id_count() const override;
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override;
  ProbeArguments arguments(const Probe& probe) override;
  Result<void> enable(const Probe& probe) override;
  bool is_enabled(dif::ProbeId id) const override { return enabled_.contains(id.value); }
  void note_disabled(dif::ProbeId id) override { enabled_.erase(id.value); }

  /// Which events the enabled probes want.
  EventTable enabled() const;
  /// Where the arguments of its probes come from.
  static const EventPlans& plans();

 private:
  Probe probe(std::uint32_t index) const;
  /// Why there is no such probe here; empty when there is.
  std::optional<std::string> why_not(std::uint32_t index) const;

  const vmm::VcpuExits* exits_;
  const TypeGraph& types_;
  std::unordered_set<std::uint32_t> enabled_;
};

}  // namespace ringside::providers
