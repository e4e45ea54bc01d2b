// The settings of a guest that every launcher understands, the result of a launch, and the
// error for a file that a launcher cannot read. Options of one launcher are in its own
// configuration (vmm/qemu/start_qemu.h, vmm/kvm/start_kvm.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/machine.h"

namespace ringside::vmm {

struct GuestConfig {
  std::string kernel, initrd;  // paths; initrd may be empty
  std::string append;          // added to the launcher's own kernel command line
  unsigned vcpus = 1;
  std::uint64_t memory = 512 << 20;                // bytes
  std::function<void(std::string_view)> progress;  // one line of news for the user
};

/// Two byte streams to the command port of our images (images/README.md); other guests ignore them.
/// The machine owns both descriptors. They block, so poll before reading. Output that nobody reads
/// stops the process in the guest that writes it, nothing else.
struct CommandPort {
  int control = -1;  // requests and answers, one line each
  int output = -1;   // the command's stdout and stderr
};

struct StartedGuest {
  std::unique_ptr<Machine> machine;
  CommandPort command_port;  // valid as long as the machine
};

/// The files that a guest starts from.
enum class GuestFile : std::uint8_t { Kernel, Initrd };

/// The error for a kernel or initrd that cannot be read: names the file, the reason and the way
/// out. `reason` is an errno. NotFound when there is no such file, else Io.
Error unreadable(GuestFile which, const std::string& path, int reason);

}  // namespace ringside::vmm
