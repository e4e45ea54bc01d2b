// The launcher of QEMU: makes a machine in a QEMU process of ours.
#pragma once

#include <cstdint>
#include <string>

#include "vmm/base/result.h"
#include "vmm/guest_config.h"

namespace ringside::vmm {

/// How QEMU executes the guest's code.
enum class AcceleratorChoice : std::uint8_t {
  Auto,  // KVM where the host's is fit, else QEMU's own translator (TCG)
  Kvm,   // an error says why not
  Tcg,
};

struct QemuConfig {
  AcceleratorChoice accelerator = AcceleratorChoice::Auto;
  bool keep = false;                           // the guest outlives us, even a SIGKILL
  bool as_is = false;                          // no RAM is set aside in it for the shim
  std::string program = "qemu-system-x86_64";  // the binary, by name or path
};

/// Starts QEMU with KVM where the host's KVM can run a stock kernel, else with TCG, and says which
/// through `progress`. Returns once QEMU runs; the guest has only just begun to boot.
/// Call it on the main thread: without `keep` the kernel kills QEMU when the thread that started it
/// ends. With `keep` QEMU stays, even if we are killed; a small process of ours makes sure that the
/// guest runs on then (guardian.h), and the caller must have one thread only.
Result<StartedGuest> start_qemu(const GuestConfig& guest, const QemuConfig& config);

}  // namespace ringside::vmm
