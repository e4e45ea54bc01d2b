// The launcher of our own VMM: makes a machine in this process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/guest_config.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/kvm/devices/disk_file.h"

namespace ringside::vmm {

struct KvmConfig {
  std::vector<DiskConfig> disks;
  BootPreference boot = BootPreference::Auto;
  /// The guest's kernel, if open_kernel() has been called for it already; null otherwise.
  std::shared_ptr<const KernelFile> kernel_file;
  bool hold = false;  // the vCPUs wait for Vcpus::release()
  /// Gets one line about something that went wrong while the guest goes on. Called on any thread.
  std::function<void(std::string_view)> warn;
  bool terminal = false;  // stdin goes to the guest's console, which goes to stderr
  std::string device = "/dev/kvm";
};

/// Boots the kernel (bzImage, vmlinux, Multiboot or plain ELF) on our own VMM under KVM. The error
/// is one line that says what to do: KVM is absent, not permitted, lacks a capability (by name) or
/// cannot run kernel code here; a kernel, initrd or disk is bad.
Result<StartedGuest> start_kvm(const GuestConfig& guest, const KvmConfig& config);

}  // namespace ringside::vmm
