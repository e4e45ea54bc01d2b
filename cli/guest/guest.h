// The guests of a session. start_guests() starts or attaches to each machine, finds the kernel
// inside, and makes the command port ready. Used by the session.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/guest/guest_command.h"
#include "cli/messages/signals.h"
#include "cli/options/options.h"
#include "providers/tracer/target.h"
#include "vmm/base/result.h"
#include "vmm/machine.h"

namespace ringside::cli {

/// How far the command of -c gets before tracing begins: to its execve(), which can be traced, or
/// to its program's first instruction, so that the program's own functions have probes.
enum class CommandStart : std::uint8_t { Waiting, Begun };

struct Guest {
  providers::TracedMachine traced;
  /// Pauses a kernel that moved itself where it has arrived; reset() lets it go on.
  std::unique_ptr<vmm::PausedMachine> paused_at_arrival;
  std::optional<GuestCommand> command;              // where -c asked for one
  std::chrono::steady_clock::duration discovery{};  // from the machine to its symbols and types
  std::int64_t command_pid = 0;                     // of the command, which waits
};

/// Attaches to those of the line's machines that run already, and starts the others, which boot at
/// the same time. Waits until the kernel of each runs, and until the command of -c is ready in
/// each. To trace from the first instruction, it holds the machines there instead. A kernel that
/// moves itself (KASLR) is held at its first instructions at its new addresses. An order to end
/// ends the wait with an error. On failure everything that was started is shut down again.
Result<std::vector<Guest>> start_guests(const CommandLine& line, EndEvents& events,
                                        CommandStart start);

/// Whether the machine has ended. A machine's command port and monitor close a moment before its
/// end can be seen. A caller that sees one of them closed waits here for the end, for at most 20
/// seconds.
bool await_end(vmm::Machine& machine);
/// Whether it has ended, as its memory may say a moment before: a process takes that along.
bool is_ending(vmm::Machine& machine);
/// The end of a machine in words for the user: one line with the console's last words.
std::string describe_end(vmm::Machine& machine);
/// The reason why tracing did not begin: the machine's loss, where it is lost, else `error`. A
/// symptom that came first (a port that closed, memory that cannot be read) tells less, or a lie.
Error or_lost(Error error, vmm::Machine& machine);

}  // namespace ringside::cli
