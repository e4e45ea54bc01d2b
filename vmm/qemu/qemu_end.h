// How a guest ended: collects QEMU's events, and decides once QEMU has ended.
// Pure. Used by QemuWatcher.
#pragma once

#include <string>
#include <string_view>

#include "vmm/machine.h"
#include "vmm/qemu/qmp.h"

namespace ringside::vmm {

class QemuEnd {
 public:
  /// Remembers what matters of one event (QEMU docs: interop/qemu-qmp-ref, "SHUTDOWN").
  void note(const QmpEvent& event);
  /// `console`: the last of the guest's console. A kernel that panics resets the machine just as a
  /// reboot does; only the console tells them apart. A guest that prints the first line of a panic
  /// and reboots counts as panicked.
  MachineState judge(std::string_view console) const;

 private:
  bool panicked_ = false;
  std::string shutdown_reason_;  // of the last SHUTDOWN; empty before
};

}  // namespace ringside::vmm
