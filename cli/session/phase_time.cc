#include "cli/session/phase_time.h"

#include <fmt/format.h>

#include "cli/messages.h"

namespace ringside::cli {

void report_time(const Settings& settings, std::string_view phase, Clock::time_point since) {
  if (!settings.debug) return;
  const std::chrono::duration<double, std::milli> spent = Clock::now() - since;
  say(fmt::format("{} in {:.1f} ms", phase, spent.count()));
}

void report_pauses(const Settings& settings, const SessionTargets& targets) {
  if (!settings.debug) return;
  for (const SessionTarget& entry : targets) {
    const vmm::Machine* const machine = entry.target->machine();
    if (machine == nullptr) continue;
    targets.print_line(entry, "the guest stood still " + machine->vcpus().pauses().describe());
  }
}

}  // namespace ringside::cli
