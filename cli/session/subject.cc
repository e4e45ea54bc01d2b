#include "cli/session/subject.h"

#include <utility>

#include "cli/messages.h"

namespace ringside::cli {

Subject::Subject(std::unique_ptr<providers::Target> attached, Guest guest, std::int64_t pid,
                 std::int32_t vmid)
    : target(std::move(attached)),
      paused_at_arrival(std::move(guest.paused_at_arrival)),
      command(std::move(guest.command)),
      process(pid),
      number(vmid),
      environment(std::in_place, target->tracer(), target->kernel(),
                  target->machine() != nullptr ? &target->machine()->memory() : nullptr, process),
      view(*target, process) {}

void Subjects::add(std::unique_ptr<providers::Target> attached, Guest guest, std::int64_t pid) {
  all_.emplace_back(std::move(attached), std::move(guest), pid,
                    static_cast<std::int32_t>(all_.size()));
}

std::optional<int> Subjects::exit_status() const {
  for (const Subject& subject : all_) {
    if (const auto status = subject.target->engine().exit_status()) return status;
  }
  return std::nullopt;
}

std::string Subjects::line_start(const Subject& subject) const {
  return several() ? subject.target->name() + ": " : std::string();
}

void Subjects::print_line(const Subject& subject, const std::string& text) const {
  say(line_start(subject) + text);
}

}  // namespace ringside::cli
