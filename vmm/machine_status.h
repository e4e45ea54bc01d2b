// A part of a machine: what became of its guest, and what is to be said about it.
// Threads: every function from any. Fire context: no.
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
  Died,        // the process behind the machine is gone
};

class MachineStatus {
 public:
  virtual ~MachineStatus() = default;
  /// What became of the guest so far; does not block. Leaving Running is for ever.
  virtual MachineState state() const = 0;
  /// Readable when state() may have changed; -1 when the machine has no such event.
  virtual int event_fd() const = 0;
  /// The last lines of the guest's console, for messages.
  virtual std::string console_tail() const = 0;
  /// How the process behind a machine that Died ended, and its own last line; empty otherwise, or
  /// where there is no such process.
  virtual std::string cause_of_death() const { return {}; }
  /// More than one line of the same where there is more: the state of the vCPU that died.
  virtual std::string last_words() const { return {}; }
  /// What the owner of a machine that is not ours did to it since the last call, a line each: it
  /// was paused, it goes on.
  virtual std::vector<std::string> take_news() { return {}; }
  /// Why we have to turn away from a machine that is still Running, at once: it moves elsewhere.
  virtual std::optional<std::string> must_leave() const { return std::nullopt; }
};

}  // namespace ringside::vmm
