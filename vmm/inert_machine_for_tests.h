// A machine with RAM that never runs: what the fakes of this and the folders above derive from, so
// that each overrides only what its test looks at. Not linked into the product.
// Does not: own the RAM, count pauses, write code.
// Fire context: no.
#pragma once

#include "vmm/machine.h"

namespace ringside::vmm {

class InertMachine : public Machine {
 public:
  std::string_view kind() const override { return "fake"; }
  unsigned vcpu_count() const override { return 1; }
  std::optional<GuestMemory::Extent> reserved_memory() const override { return std::nullopt; }
  MachineState state() override { return MachineState::Running; }
  int state_event_fd() const override { return -1; }
  std::string console_tail() const override { return {}; }
  std::optional<CommandPort> command_port() override { return std::nullopt; }
  void shut_down() override {}

 protected:
  Result<void> pause_vcpus() override { return {}; }
  Result<void> resume_vcpus() override { return {}; }
  Result<Registers> read_registers(unsigned) override { return Registers{}; }
  Result<void> write_code_bytes(std::span<const CodeWrite>) override { return {}; }
};

}  // namespace ringside::vmm
