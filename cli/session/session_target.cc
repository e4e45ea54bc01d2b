#include "cli/session/session_target.h"

#include <fmt/format.h>

#include <utility>

#include "cli/messages/messages.h"

namespace ringside::cli {

SessionTarget::SessionTarget(std::unique_ptr<providers::Target> attached, Guest guest,
                             std::int64_t pid, std::int32_t vmid)
    : target(std::move(attached)),
      paused_at_arrival(std::move(guest.paused_at_arrival)),
      command(std::move(guest.command)),
      process(pid),
      number(vmid),
      environment(std::in_place, target->tracer(), target->kernel(),
                  target->machine() != nullptr ? &target->machine()->memory() : nullptr, process),
      view(*target, process) {}

void SessionTargets::add(std::unique_ptr<providers::Target> attached, Guest guest,
                         std::int64_t pid) {
  all_.emplace_back(std::move(attached), std::move(guest), pid,
                    static_cast<std::int32_t>(all_.size()));
}

std::optional<int> SessionTargets::exit_status() const {
  for (const SessionTarget& entry : all_) {
    if (const auto status = entry.target->engine().exit_status()) return status;
  }
  return std::nullopt;
}

std::string SessionTargets::line_start(const SessionTarget& entry) const {
  return several() ? entry.target->name() + ": " : std::string();
}

void SessionTargets::print_line(const SessionTarget& entry, const std::string& text) const {
  say(line_start(entry) + text);
}

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
