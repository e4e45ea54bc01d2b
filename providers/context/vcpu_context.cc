#include "providers/context/vcpu_context.h"

namespace ringside::providers {

VcpuContext::VcpuContext(const vmm::GuestMemory& memory, unsigned vcpus,
                         const std::optional<LinuxVcpu>& inside)
    : vcpus_(vcpus),
      kernel_(inside ? &inside->kernel : nullptr),
      linux_(inside ? &inside->context : nullptr),
      bare_(memory) {
  settle({}, {});
}

CpuPlace VcpuContext::locate(const Registers& registers, unsigned vcpu) const {
  if (kernel_ == nullptr) return {vcpu, GuestVirt(0)};
  return locate_cpu(*kernel_, registers, vcpu, vcpus_);
}

void VcpuContext::begin(const Registers& registers, const CpuPlace& place, const ArgumentPlan& plan,
                        const HostFacts& facts) {
  plan_ = &plan;
  facts_ = facts;
  keeps_still_ = false;
  settle(registers, place);
}

void VcpuContext::begin(vmm::StoppedVcpu& vcpu, const ArgumentPlan& plan, const HostFacts& facts) {
  plan_ = &plan;
  facts_ = facts;
  keeps_still_ = false;
  guest_ = nullptr;
  stopped_ = &vcpu;
}

void VcpuContext::look() const {
  const Registers& registers = stopped_->registers();
  settle(registers, locate(registers, stopped_->index()));
}

void VcpuContext::settle(const Registers& registers, const CpuPlace& place) const {
  if (linux_ != nullptr && place.percpu_base.raw() != 0) {
    linux_->begin(registers, place.percpu_base);
    linux_->select_anywhere();
    guest_ = linux_;
    registers_ = &linux_->registers();
  } else {
    bare_.begin(registers);
    guest_ = &bare_;
    registers_ = &bare_.registers();
  }
}

Result<std::uint64_t, Fault> VcpuContext::argument(unsigned n) const {
  static constexpr Registers kNoRegisters{};
  // The vCPU is looked at only for what is its own.
  if (!plan_->needs_vcpu(n)) return plan_->value(n, {kNoRegisters, kernel_reader_, 0, facts_});
  const GuestReader& memory = guest().kernel();
  return plan_->value(n, {*registers_, memory, 0, facts_});
}

Result<void, Fault> VcpuContext::wait(std::uint64_t nanoseconds) const {
  // Linux's keeps the shim's heart beating, whoever waits.
  if (linux_ != nullptr) return linux_->wait(nanoseconds);
  return dif::GuestContext::wait(nanoseconds);
}

}  // namespace ringside::providers
