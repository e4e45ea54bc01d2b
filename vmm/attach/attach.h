// Attaching: makes a Machine of a virtual machine that someone else started and that runs already.
// The target decides the back end: a process (process_machine.h), a QMP socket, or a libvirt
// domain. "How to add a back end": add a kind of AttachTarget, and a function here that makes a
// Machine of it. That machine's shut_down() only detaches: it never ends what we did not start.
// Does not: install anything, or look for Linux beyond what proves the machine's memory.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/attach/host/attach_target.h"
#include "vmm/attach/monitor/shim_card.h"
#include "vmm/machine.h"

namespace ringside::vmm {

struct AttachedMachine {
  std::unique_ptr<Machine> machine;
  std::string name;  // what its owner calls it, else after its program and process
  std::optional<std::string> stopped_by;  // why its guest stands still, where its monitor says so
  std::optional<pid_t> let_go_of;  // a ringside that was killed, in whose pause it stood until now
};

/// A machine that nothing is written to. It need not run, and a part of it may be missing.
struct ObservedMachine {
  std::unique_ptr<Machine> machine;
  std::string name;
  std::optional<std::string> stopped_by;  // why its guest stands still; empty when it runs
  std::vector<std::string> limits;        // what is not to be seen of it, and why, a line each
  /// Asks which drives are slow because its owner wants it, a line each. Empty: nobody knows.
  /// While the machine lives.
  std::function<std::vector<std::string>()> throttled_drives;
};

/// Everything is asked and proven before the target is changed, so an error leaves it as it was.
/// The error is one line that says what is missing. A card is Unsupported for a process, because it
/// has no monitor.
Result<AttachedMachine> attach(const AttachTarget& target, CardUse card = CardUse::None);

/// The process that runs the target's machine, which notices nothing: a socket is not connected to.
/// Empty where it is not to be seen; attach() says why.
std::optional<pid_t> find_process(const AttachTarget& target);

/// A line of `limits`, for one that is looked at while it runs.
std::string not_stopped_because(std::string_view why);

/// As attach(), but only to read. It works while another ringside or the owner's debugger is
/// attached. If a monitor's socket has another client, it uses only the memory of the process.
Result<ObservedMachine> look_at(const AttachTarget& target);
/// The memory of the machine that a process runs, without registers. Anybody may attach to it
/// meanwhile, this program as well.
Result<ObservedMachine> look_at_memory(pid_t process);

}  // namespace ringside::vmm
