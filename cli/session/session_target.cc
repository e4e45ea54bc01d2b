#include "cli/session/session_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/messages/messages.h"
#include "vmm/linux/types/types_without_btf.h"

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

void SessionTargets::tell_omissions() const {
  for (const SessionTarget& entry : all_) {
    guest_linux::Kernel* const kernel = entry.target->kernel();
    if (kernel == nullptr) continue;
    for (const std::string& omission : kernel->take_omissions()) {
      print_line(entry, omission);
    }
  }
}

std::string SessionTargets::way_to_types() const {
  const bool lacking = std::ranges::any_of(all_, [](const SessionTarget& entry) {
    const guest_linux::Kernel* const kernel = entry.target->kernel();
    const bool is_linux = kernel != nullptr && !kernel->release().empty();
    return is_linux && !guest_linux::has_kernel_types(kernel->types());
  });
  return lacking ? "; the guest's kernel carries no types: --types FILE takes them from a file"
                 : "";
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
    targets.print_line(entry, "the guest stood still " + machine->stops().pauses().describe());
  }
}

}  // namespace ringside::cli
