#include "cli/session/target_end.h"

#include <string>

#include "cli/guest/guest.h"

namespace ringside::cli {
namespace {

/// Tells what a machine whose vCPUs we run knows of its own end, and what fired last before it.
void report_death(const WatchedTarget& watched, const providers::Target& target) {
  if (target.machine()->exits() == nullptr) return;
  // The first line has been told with the end itself.
  const std::string words = target.machine()->status().exit_report();
  const std::size_t rest = words.find('\n');
  if (rest != std::string::npos) watched.say(words.substr(rest + 1));
  std::string names;
  for (const dif::ProbeId probe : target.tracer().last_firings()) {
    names += (names.empty() ? "" : ", ") + target.engine().probe_name(probe).to_string();
  }
  if (!names.empty()) watched.say("the last probes that fired, the very last first: " + names);
}

}  // namespace

bool ended_well(const providers::Target& target) {
  return target.held_kernel() != nullptr &&
         target.machine()->state() == vmm::MachineState::PoweredOff;
}

void tell_end(WatchedTarget& watched, EndReason reason) {
  const providers::Target& target = watched.target();
  if (reason == EndReason::KernelGone) {
    return watched.say("tracing ended: " +
                       target.tracer().loss().value_or(
                           "the guest's memory was not its own for a moment: its owner has loaded "
                           "a snapshot of it, which is not traced"));
  }
  if (reason == EndReason::MachineLeft) {
    const auto by_machine = target.machine()->status().must_leave();
    return watched.say("tracing ended: " +
                       by_machine.value_or(target.tracer().must_leave().value_or("")));
  }
  await_end(*target.machine());
  const bool fine = ended_well(target);
  watched.say("tracing ended: " + describe_end(*target.machine()));
  if (!fine) report_death(watched, target);
}

}  // namespace ringside::cli
