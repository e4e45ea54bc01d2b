#include "providers/context/vcpu_context.h"

namespace ringside::providers {

VcpuContext::VcpuContext(const vmm::GuestMemory& memory, unsigned vcpus,
                         const std::optional<LinuxInside>& inside)
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

void VcpuContext::begin(const Registers& registers, const CpuPlace& place,
                        const Arguments& arguments) {
  arguments_ = arguments;
  settle(registers, place);
}

void VcpuContext::begin(vmm::StoppedVcpu& vcpu, const Arguments& arguments) {
  arguments_ = arguments;
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
  } else {
    bare_.begin(registers);
    guest_ = &bare_;
  }
}

Result<void, Fault> VcpuContext::wait(std::uint64_t nanoseconds) const {
  // Linux's keeps the shim's heart beating, whoever waits.
  if (linux_ != nullptr) return linux_->wait(nanoseconds);
  return dif::GuestContext::wait(nanoseconds);
}

}  // namespace ringside::providers
