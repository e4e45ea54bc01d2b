// A health report of a guest: what each CPU does, which task waits for what and who holds it, the
// kernel's own signs of trouble, and the likely cause. It is made from memory and registers alone:
// nothing enters the guest, so it works for a guest that does not respond. Registers and the stacks
// of running tasks are read in one short pause. Everything else is read while the guest runs. Tasks
// may move meanwhile, but not the ones that hang.
// Used by the command `why`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vmm/linux/health/report.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"

namespace ringside::guest_linux {

/// A saved guest does not change. A guest that runs is looked at twice if a sign may be harmless:
/// after 50 ms if a vCPU has interrupts off, and for up to some seconds if an interrupt or a timer
/// seems to be lost.
enum class GuestSource : std::uint8_t { Saved, Runs };

/// How a guest is looked at.
struct ExamineOptions {
  GuestSource life = GuestSource::Runs;
  std::optional<std::string> stopped_by;  // who or what has stopped it, in words
  std::vector<std::string> limits;        // what is not to be seen of it, and why, a line each
  /// Tells which drives are slow because the machine's owner wants it, a line each. Asked if a disk
  /// does not answer. Empty: nobody knows.
  std::function<std::vector<std::string>()> ask_drives;
  /// Tells all that the host keeps from running, a line each. Asked once, at the end. Empty: nobody
  /// knows.
  std::function<std::vector<std::string>()> ask_host;
};

/// `kernel` is null where no Linux was found, for the reason `trouble`. An error where the machine
/// cannot be paused.
Result<HealthReport> examine(vmm::Machine& machine, Kernel* kernel, std::string trouble,
                             const ExamineOptions& options);

}  // namespace ringside::guest_linux
