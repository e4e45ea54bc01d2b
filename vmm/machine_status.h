// A part of a machine: whether its guest runs or how it ended, with words for the user.
// Threads: every function from any.
// Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringside::vmm {

enum class MachineState : std::uint8_t {
  Running,
  PoweredOff,  // the guest ended by its own wish
  Rebooted,    // the guest reset itself
  Panicked,    // the guest's kernel panicked
  Died,        // the process that ran the machine is gone, or the machine could not go on
};

class MachineStatus {
 public:
  virtual ~MachineStatus() = default;
  /// Does not block. A state other than Running is final.
  virtual MachineState state() const = 0;
  /// A descriptor that is readable when state() may have changed; -1 when the machine has none. The
  /// machine keeps it.
  virtual int event_fd() const = 0;
  /// The last lines of the guest's console, for messages.
  virtual std::string console_tail() const = 0;
  /// Why a machine Died, in one line: how its process ended, with that process's own last line.
  /// Empty in other states, and where nothing is known.
  virtual std::string exit_reason() const { return {}; }
  /// Whether it Died because it no longer answered and we ended it: the error of that moment says
  /// so.
  virtual bool was_ended_by_us() const { return false; }
  /// exit_reason() and, in further lines, the state of the vCPU that died, where it is known.
  virtual std::string exit_report() const { return {}; }
  /// The owner's actions on a machine that is not ours since the last call, a line each: it was
  /// paused, it goes on.
  virtual std::vector<std::string> take_news() { return {}; }
  /// Why we have to turn away from a machine that is still Running, at once: it moves elsewhere.
  virtual std::optional<std::string> must_leave() const { return std::nullopt; }
};

}  // namespace ringside::vmm
