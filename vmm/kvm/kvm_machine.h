// The machine of our own: a small VMM on linux/kvm.h. One thread a vCPU, one for what comes in from
// outside (console, disks). Made by start_kvm (vmm/machine.h).
// Life: created and loaded -> vCPUs wait at the first instruction -> release() -> the guest runs
// -> it ends by itself, or shut_down().
// Threads: every function may be called from any thread. A vCPU that handles an exit counts as
// paused: it does not enter the guest again before the last PausedMachine is gone.
// Fire context: memory() yes, the rest no.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "vmm/machine.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

class KvmMachine final : public Machine {
 public:
  static Result<std::unique_ptr<KvmMachine>> create(const MachineConfig& config);
  ~KvmMachine() override;

  std::string_view kind() const override { return "kvm"; }
  unsigned vcpu_count() const override;
  GuestMemory& memory() override;
  std::optional<GuestMemory::Extent> reserved_memory() const override;
  MachineState state() override;
  int state_event_fd() const override;
  std::string console_tail() const override;
  std::string cause_of_death() const override;
  std::string last_words() const override;
  std::optional<CommandPort> command_port() override;
  VcpuExits* exits() override;
  void release() override;
  void shut_down() override;

 private:
  class Impl;
  explicit KvmMachine(std::unique_ptr<Impl> impl);

  Result<void> pause_vcpus() override;
  Result<void> resume_vcpus() override;
  Result<Registers> read_registers(unsigned vcpu) override;
  Result<void> write_code_bytes(std::span<const CodeWrite> writes) override;

  std::unique_ptr<Impl> impl_;
};

}  // namespace ringside::vmm::kvm
