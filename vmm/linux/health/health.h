// A health report of a guest: what each CPU does, who waits for what and who holds it, and what the
// kernel knows of its own troubles, with the likely cause. From memory and registers alone: nothing
// enters the guest, and it works on one that answers nothing. Registers and the stacks of what runs
// are read in one short pause; all else while the guest goes on, so that tasks may have moved
// meanwhile, but not those that hang.
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

/// A saved guest is as it was. One that runs is looked at twice where what was seen may be nothing:
/// after 50 ms where a vCPU has interrupts off, and for up to some seconds where an interrupt or a
/// timer seems to be lost.
enum class GuestSource : std::uint8_t { Saved, Runs };

/// How a guest is looked at.
struct ExamineOptions {
  GuestSource life = GuestSource::Runs;
  std::optional<std::string> stopped_by;  // who or what has stopped it, in words
  std::vector<std::string> limits;        // what is not to be seen of it, and why, a line each
  /// Tells all that the host keeps from running, a line each. Asked once, at the end. Empty: nobody
  /// knows.
  std::function<std::vector<std::string>()> ask_host;
};

/// `kernel` is null where no Linux was found, for the reason `trouble`. An error where the machine
/// cannot be paused.
Result<HealthReport> examine(vmm::Machine& machine, Kernel* kernel, std::string trouble,
                             const ExamineOptions& options);

}  // namespace ringside::guest_linux
