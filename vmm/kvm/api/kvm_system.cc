#include "vmm/kvm/api/kvm_system.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace ringside::vmm::kvm {

namespace {

struct Needed {
  int capability;
  const char* name;
  int bits;  // all of these in the answer; 0: any answer but 0
};

// clang-format off
constexpr Needed kNeeded[] = {
    {KVM_CAP_IRQCHIP, "KVM_CAP_IRQCHIP", 0},
    {KVM_CAP_IRQ_ROUTING, "KVM_CAP_IRQ_ROUTING", 0},
    {KVM_CAP_PIT2, "KVM_CAP_PIT2", 0},
    {KVM_CAP_USER_MEMORY, "KVM_CAP_USER_MEMORY", 0},
    {KVM_CAP_SET_TSS_ADDR, "KVM_CAP_SET_TSS_ADDR", 0},
    {KVM_CAP_EXT_CPUID, "KVM_CAP_EXT_CPUID", 0},
    {KVM_CAP_MP_STATE, "KVM_CAP_MP_STATE", 0},
    {KVM_CAP_SET_GUEST_DEBUG, "KVM_CAP_SET_GUEST_DEBUG", 0},
    {KVM_CAP_VCPU_EVENTS, "KVM_CAP_VCPU_EVENTS", 0},
    {KVM_CAP_IMMEDIATE_EXIT, "KVM_CAP_IMMEDIATE_EXIT", 0},
    {KVM_CAP_SYNC_REGS, "KVM_CAP_SYNC_REGS", KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS},
};
// clang-format on

Error cannot_open(const std::string& device) {
  const int reason = errno;
  if (reason == EACCES || reason == EPERM) {
    return {ErrorCode::Io,
            fmt::format("{} may not be opened: add yourself to its group (sudo usermod -aG kvm "
                        "$USER, then log in again), or take --machine qemu",
                        device)};
  }
  if (reason == ENOENT || reason == ENODEV || reason == ENXIO) {
    return {ErrorCode::Unsupported,
            fmt::format("this host has no {}: modprobe kvm_intel or kvm_amd, with virtualization "
                        "(VT-x, AMD-V) turned on in the firmware; or take --machine qemu",
                        device)};
  }
  return {ErrorCode::Io, fmt::format("cannot open {}: {}", device, std::strerror(reason))};
}

Error no_kvm(const std::string& device) {
  return {ErrorCode::Unsupported,
          fmt::format("{} does not speak version {} of the KVM API; take --machine qemu", device,
                      KVM_API_VERSION)};
}

}  // namespace

Error kvm_error(std::string_view call) {
  return {ErrorCode::Io, fmt::format("{} failed: {}", call, std::strerror(errno))};
}

Result<void> check_capabilities(const std::function<int(int)>& check) {
  for (const Needed& needed : kNeeded) {
    const int has = check(needed.capability);
    if (has != 0 && (has & needed.bits) == needed.bits) continue;
    return fail(ErrorCode::Unsupported,
                fmt::format("this host's KVM lacks {}: Linux 5.10 or later has it; or take "
                            "--machine qemu",
                            needed.name));
  }
  return {};
}

Result<KvmSystem> KvmSystem::open(const std::string& device) {
  UniqueFd fd(::open(device.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return Unexpected<Error>(cannot_open(device));
  if (ioctl(fd.get(), KVM_GET_API_VERSION, 0) != KVM_API_VERSION) {
    return Unexpected<Error>(no_kvm(device));
  }
  const int run_size = ioctl(fd.get(), KVM_GET_VCPU_MMAP_SIZE, 0);
  if (run_size < static_cast<int>(sizeof(kvm_run))) return Unexpected<Error>(no_kvm(device));
  KvmSystem system(std::move(fd), static_cast<std::size_t>(run_size));
  TRY(check_capabilities([&](int capability) { return system.check(capability); }));
  return system;
}

int KvmSystem::check(int capability) const {
  return std::max(0, ioctl(fd_.get(), KVM_CHECK_EXTENSION, capability));
}

unsigned KvmSystem::most_vcpus() const {
  const int most = check(KVM_CAP_MAX_VCPUS), usual = check(KVM_CAP_NR_VCPUS);
  return static_cast<unsigned>(std::max({most, usual, 1}));
}

Result<std::unique_ptr<CpuidTable>> KvmSystem::supported_cpuid() const {
  auto table = std::make_unique<CpuidTable>();
  TRY(kvm_call(fd_.get(), kGetSupportedCpuid, "KVM_GET_SUPPORTED_CPUID", table.get()));
  return table;
}

}  // namespace ringside::vmm::kvm
