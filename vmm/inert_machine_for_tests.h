// A machine with RAM that never runs; all its parts are one object. The fakes of this folder and of
// those above derive from it, and override only what their tests need. Not linked into the product.
// Does not: own the RAM, count pauses, write code.
#pragma once

#include <string>

#include "vmm/machine.h"

namespace ringside::vmm {

class InertMachine : public Machine, private Vcpus, private CodeWriter, private MachineStatus {
 public:
  std::string_view kind() const override { return "fake"; }
  Vcpus& vcpus() override { return *this; }
  CodeWriter& code() override { return *this; }
  MachineStatus& status() override { return *this; }
  void shut_down() override {}

 protected:
  // Fakes override these.
  unsigned count() const override { return 1; }
  MachineState state() const override { return MachineState::Running; }
  int event_fd() const override { return -1; }
  std::string console_tail() const override { return {}; }
  Result<void> pause() override { return {}; }
  Result<void> resume() override { return {}; }
  Result<Registers> registers(unsigned) override { return Registers{}; }
  Result<void> write(std::span<const CodeWrite>) override { return {}; }
};

}  // namespace ringside::vmm
