// The machine of our own VMM, on linux/kvm.h. Each vCPU has a thread, each virtio device another,
// the serial ports one. Made by start_kvm (vmm/kvm/start_kvm.h). Life: created and loaded -> vCPUs
// wait at the first instruction -> release() -> the guest runs
// -> it ends by itself, or shut_down().
// Threads: every function may be called from any thread. A vCPU that handles an exit counts as
// paused: it does not enter the guest again before the last PausedMachine is gone.
// Fire context: memory() yes, the rest no.
#pragma once

#include <unistd.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "vmm/guest_config.h"
#include "vmm/kvm/start_kvm.h"
#include "vmm/machine.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

class KvmMachine final : public Machine {
 public:
  /// The errors are those of start_kvm().
  static Result<std::unique_ptr<KvmMachine>> create(const GuestConfig& guest,
                                                    const KvmConfig& config);
  ~KvmMachine() override;

  std::string_view kind() const override { return "kvm"; }
  pid_t host_process() const override { return getpid(); }
  GuestMemory& memory() override;
  Vcpus& vcpus() override;
  CodeWriter& code() override;
  MachineStatus& status() override;
  std::optional<GuestMemory::Extent> reserved_memory() const override;
  VcpuExits* exits() override;
  void shut_down() override;
  CommandPort command_port() const;

 private:
  class Impl;
  explicit KvmMachine(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace ringside::vmm::kvm
