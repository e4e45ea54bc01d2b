#include "cli/session/subject.h"

#include "cli/messages.h"

namespace ringside::cli {

Subject& Subjects::add() {
  const auto number = static_cast<std::int32_t>(all_.size());
  Subject& subject = all_.emplace_back();
  subject.number = number;
  return subject;
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

void Subjects::say_of(const Subject& subject, const std::string& text) const {
  say(line_start(subject) + text);
}

}  // namespace ringside::cli
