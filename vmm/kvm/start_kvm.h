// The launcher of our own VMM: from what the user asked for to a machine in this process.
// Fire context: no.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/guest_config.h"
#include "vmm/kernel_file/kernel_choice.h"
#include "vmm/kvm/devices/disk_config.h"

namespace ringside::vmm {

struct KvmConfig {
  std::vector<DiskConfig> disks;
  BootWay boot = BootWay::Auto;
  /// The guest's kernel as open_kernel() has read it, where somebody needed it before.
  std::shared_ptr<const KernelFile> kernel_file;
  bool hold = false;  // the vCPUs wait for Vcpus::release()
  /// One line of what goes wrong in a guest that goes on; called on any thread.
  std::function<void(std::string_view)> warn;
  bool terminal = false;  // stdin goes to the guest's console, which goes to stderr
  std::string device = "/dev/kvm";
};

/// Boots the kernel (bzImage, vmlinux, Multiboot or plain ELF) on our own VMM under KVM. One line
/// that says what to do where KVM is absent, not permitted, lacks a capability (by name), or cannot
/// run kernel code here, and for bad kernels, initrds and disks.
Result<StartedGuest> start_kvm(const GuestConfig& guest, const KvmConfig& config);

}  // namespace ringside::vmm
