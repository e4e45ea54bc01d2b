#include "vmm/qemu/qemu_end.h"

namespace ringside::vmm {

void QemuEnd::note(const QmpEvent& event) {
  if (event.name == "GUEST_PANICKED") panicked_ = true;
  if (event.name == "SHUTDOWN") shutdown_reason_ = json_text(event.data, "reason");
}

MachineState QemuEnd::judge(std::string_view console) const {
  if (panicked_ || shutdown_reason_ == "guest-panic") return MachineState::Panicked;
  if (shutdown_reason_ == "guest-shutdown") return MachineState::PoweredOff;
  if (shutdown_reason_ != "guest-reset") return MachineState::Died;
  const bool panic_text = console.find("Kernel panic - not syncing") != std::string_view::npos;
  return panic_text ? MachineState::Panicked : MachineState::Rebooted;
}

}  // namespace ringside::vmm
