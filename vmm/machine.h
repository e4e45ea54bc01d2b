// A machine: a virtual machine that we can see into and whose code we can change. It is parts, each
// with an interface of its own: guest memory (vmm/guest_memory.h), vCPUs (vmm/vcpus.h), code
// writing (vmm/code_writer.h), and what became of the guest (vmm/machine_status.h). A machine of
// several back ends takes each part from the one that has it. Back ends: vmm/qemu/ (QEMU that we
// start), vmm/kvm/ (our own VMM). "No guest" is a null pointer at higher levels. "How to add a back
// end": give the parts, and a Machine that names them; nothing above vmm may know which one it is.
// Whoever starts machines does it in a launcher, with a configuration of its own
// (vmm/guest_config.h), and none of that is here. Threads: every function may be called from any
// thread. Pauses nest, in one thread or several: the guest runs again when the last PausedMachine
// is gone. Fire context: memory() yes; all else no.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/code_writer.h"
#include "vmm/guest_memory.h"
#include "vmm/machine_status.h"
#include "vmm/page_walk.h"
#include "vmm/vcpus.h"

namespace ringside::vmm {

class VcpuExits;

class Machine {
 public:
  virtual ~Machine() = default;

  virtual std::string_view kind() const = 0;  // "qemu (TCG)", "qemu (KVM)"
  /// The host's process that runs the guest; 0 where there is none.
  virtual pid_t host_process() const { return 0; }
  virtual GuestMemory& memory() = 0;
  virtual Vcpus& vcpus() = 0;
  const Vcpus& vcpus() const { return const_cast<Machine*>(this)->vcpus(); }
  virtual CodeWriter& code() = 0;
  virtual MachineStatus& status() = 0;
  const MachineStatus& status() const { return const_cast<Machine*>(this)->status(); }
  /// What a machine whose vCPUs run in this process offers (vmm/vcpu_exits.h); null elsewhere.
  virtual VcpuExits* exits() { return nullptr; }
  /// Where start-up reserved RAM that the guest leaves alone, for the shim; empty when nowhere.
  virtual std::optional<GuestMemory::Extent> reserved_memory() const { return std::nullopt; }
  /// Ends the guest and everything that was started for it; of one that is to be kept, turns away
  /// and lets it run. Idempotent; a pause under way in another thread fails.
  virtual void shut_down() = 0;

  // The two that everybody asks.
  unsigned vcpu_count() const { return vcpus().count(); }
  MachineState state() const { return status().state(); }
};

/// While one lives, no vCPU of the machine executes guest code. Functions that change guest text
/// or page tables, or that read registers, take one, so the compiler checks that rule.
class PausedMachine {
 public:
  static Result<PausedMachine> pause(Machine& machine);
  PausedMachine(PausedMachine&& other) noexcept
      : machine_(std::exchange(other.machine_, nullptr)) {}
  PausedMachine& operator=(PausedMachine&&) = delete;
  /// Resumes; a failure to do so is visible as MachineStatus::state() afterwards.
  ~PausedMachine();

  GuestMemory& memory() { return machine_->memory(); }
  Result<Registers> registers(unsigned vcpu) { return machine_->vcpus().registers(vcpu); }
  unsigned vcpu_count() const { return machine_->vcpu_count(); }
  /// Writes code that may have run before (CodeWriter).
  Result<void> write_code(std::span<const CodeWrite> writes) {
    return machine_->code().write(writes);
  }
  /// The same where `table` has it. What it does not map is left out, and the error names it
  /// (Invalid); the others are written.
  Result<void> write_code(const PageTable& table, std::span<const VirtualCodeWrite> writes);

 private:
  explicit PausedMachine(Machine* machine) : machine_(machine) {}
  Machine* machine_;
};

}  // namespace ringside::vmm
