// What whoever starts a guest says of it, whichever launcher starts it; what only one of them knows
// is in that one's own configuration (vmm/qemu/start_qemu.h, vmm/kvm/start_kvm.h). And what a
// launcher gives back: the machine, and beside it the guest's command port.
// Fire context: no.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "vmm/machine.h"

namespace ringside::vmm {

struct GuestConfig {
  std::string kernel, initrd;  // paths; initrd may be empty
  std::string append;          // added to the launcher's own kernel command line
  unsigned vcpus = 1;
  std::uint64_t memory = 512 << 20;                // bytes
  std::function<void(std::string_view)> progress;  // one line of news for the user
};

/// Two byte streams to the command port of our images (images/README.md), which other guests need
/// not know. Both ends stay owned by the machine; they are blocking, so poll before reading. Output
/// that nobody reads stops the process in the guest that writes it, nothing else.
struct CommandPort {
  int control = -1;  // requests and answers, one line each
  int output = -1;   // the command's stdout and stderr
};

struct StartedGuest {
  std::unique_ptr<Machine> machine;
  CommandPort command_port;  // as long as the machine
};

}  // namespace ringside::vmm
