// The guest of a session: the machine started, the kernel inside found, the command port ready.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "cli/guest/guest_command.h"
#include "cli/options/options.h"
#include "cli/signals.h"
#include "vmm/base/result.h"
#include "vmm/linux/file_kernel.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"

namespace ringside::cli {

struct Guest {
  std::unique_ptr<vmm::Machine> machine;
  std::unique_ptr<guest_linux::Kernel> kernel;
  /// The same kernel, where the machine is held before its first instruction: known from its file.
  guest_linux::FileKernel* held = nullptr;
  /// Holds a kernel that moved itself where it has arrived; reset() lets it go on.
  std::unique_ptr<vmm::PausedMachine> standstill;
  std::optional<GuestCommand> command;              // where -c asked for one
  std::chrono::steady_clock::duration discovery{};  // from the machine to its symbols and types
  std::int64_t target = 0;                          // pid of the command, which waits
};

/// Starts the machine and waits until its kernel runs, and until -c's command waits to go; or, to
/// trace it from its first instruction, holds it there; one that moves itself (KASLR), at its first
/// instructions at its own addresses. A signal ends the wait with an error.
/// Everything is shut down again on failure.
Result<Guest> start_guest(const CommandLine& line, Signals& signals);

/// Whether the machine has ended. Its command port and monitor close a moment before it can be
/// seen to end, so whoever sees one of those waits here for that moment, 2 seconds at most.
bool await_end(vmm::Machine& machine);
/// What became of a machine that ended, for the user: one line with the console's last words.
std::string describe_end(vmm::Machine& machine);

}  // namespace ringside::cli
