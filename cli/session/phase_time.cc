#include "cli/session/phase_time.h"

#include <fmt/format.h>

#include "cli/messages.h"

namespace ringside::cli {

void report_time(const Settings& settings, std::string_view phase, Clock::time_point since) {
  if (!settings.debug) return;
  const std::chrono::duration<double, std::milli> spent = Clock::now() - since;
  say(fmt::format("{} in {:.1f} ms", phase, spent.count()));
}

void report_pauses(const Settings& settings, const Subjects& subjects) {
  if (!settings.debug) return;
  for (const Subject& subject : subjects) {
    const vmm::Machine* const machine = subject.target->machine();
    if (machine == nullptr) continue;
    subjects.print_line(subject, "the guest stood still " + machine->vcpus().pauses().describe());
  }
}

}  // namespace ringside::cli
