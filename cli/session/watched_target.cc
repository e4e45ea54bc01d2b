#include "cli/session/watched_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "cli/guest/guest.h"
#include "cli/messages/messages.h"
#include "cli/messages/progress.h"
#include "dif/verify/stack_use.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

using std::chrono::milliseconds;

// A guest can have processes that are slow to look at, and ever new ones.
constexpr milliseconds kMostLooking{20};
// The last output of a command that has ended fits into sockets and a pipe or two. Whoever writes
// on in the guest after it must not keep us.
constexpr unsigned kMostLastOutputs = 64;  // of up to 1 MiB each
// A serial line brings a command's line in pieces, and a busy host lets time pass between them. A
// line that is not ended for so long, or that is longer, is passed on as it is.
constexpr milliseconds kLineTimeout{500};
constexpr std::size_t kLongestHeldLine = 4096;

}  // namespace

WatchedTarget::WatchedTarget(providers::Target& target, GuestCommand* command, Sink& command_sink)
    : target_(&target),
      command_(command),
      command_sink_(&command_sink),
      records_processes_(target.user_names() != nullptr &&
                         dif::records_user_code(target.program())) {}

void WatchedTarget::say(std::string_view text) const {
  cli::say(line_start_ + std::string(text));
}

void WatchedTarget::add_events(std::vector<pollfd>& fds) const {
  vmm::Machine* const machine = target_->machine();
  const bool has_command = command_ != nullptr;
  fds.push_back({machine != nullptr ? machine->status().event_fd() : -1, POLLIN, 0});
  fds.push_back({has_command ? command_->control_fd() : -1, POLLIN, 0});
  fds.push_back({has_command && command_output_open_ ? command_->output_fd() : -1, POLLIN, 0});
  providers::FiringPause* const firing_pause = target_->tracer().firing_pause();
  fds.push_back({firing_pause != nullptr ? firing_pause->event_fd() : -1, POLLIN, 0});
  fds.push_back({target_->tracer().modules_fd(), POLLIN, 0});
  fds.push_back({target_->tracer().leave_fd(), POLLIN, 0});
}

std::uint64_t WatchedTarget::take_kept() {
  providers::FiringPause* const firing_pause = target_->tracer().firing_pause();
  return firing_pause != nullptr ? firing_pause->take_asked() : 0;
}

void WatchedTarget::let_go(std::uint64_t kept) {
  if (kept != 0) target_->tracer().firing_pause()->release(kept);
}

void WatchedTarget::take_events(const std::vector<pollfd>& fds, std::size_t at) {
  control_ready_ = fds[at + 1].revents != 0;
}

void WatchedTarget::look_at_processes() {
  if (!records_processes_) return;
  const Clock::time_point end = Clock::now() + kMostLooking;
  while (const auto pid = target_->engine().next_recorded_process()) {
    target_->user_names()->look_at(*pid);
    if (Clock::now() >= end) return;
  }
}

bool WatchedTarget::pass_output() {
  if (command_ == nullptr || !command_output_open_) return false;
  const std::size_t held = command_line_.size();
  command_output_open_ = command_->read_output(command_line_);
  const bool came = command_line_.size() > held;
  const Clock::time_point now = Clock::now();
  if (came) command_wrote_ = now;
  const std::size_t whole = command_line_.rfind('\n') + 1;  // 0 when there is none
  const bool wait = command_output_open_ && now - command_wrote_ < kLineTimeout &&
                    command_line_.size() - whole <= kLongestHeldLine;
  write_command_output(wait ? whole : command_line_.size());
  return came;
}

void WatchedTarget::pass_last_output(Command command) {
  const bool ended = command == Command::Ended;
  for (unsigned passes = 0; pass_output() && ended && passes < kMostLastOutputs;) ++passes;
  write_command_output(command_line_.size());
}

void WatchedTarget::write_command_output(std::size_t size) {
  if (size == 0) return;
  command_sink_->write(std::string_view(command_line_).substr(0, size));
  command_sink_->flush();
  command_line_.erase(0, size);
}

std::optional<EndReason> WatchedTarget::end() {
  // The other kernel knows nothing of the command.
  if (target_->tracer().loss()) {
    vmm::Machine* const lost = target_->machine();
    return lost != nullptr && is_ending(*lost) ? EndReason::MachineEnded : EndReason::KernelGone;
  }
  // The command's end before the machine's: `poweroff` as a command ends both.
  if (const auto end = take_control()) return end;
  if (target_->process_ended()) return EndReason::CommandEnded;
  vmm::Machine* const machine = target_->machine();
  if (machine != nullptr && machine->state() != vmm::MachineState::Running) {
    return EndReason::MachineEnded;
  }
  if (machine != nullptr && machine->status().must_leave()) return EndReason::MachineLeft;
  if (target_->tracer().must_leave()) return EndReason::MachineLeft;
  return std::nullopt;
}

std::optional<EndReason> WatchedTarget::take_control() {
  if (command_ended_) return EndReason::CommandEnded;
  if (command_ == nullptr || !control_ready_) return std::nullopt;
  if (!command_->read_control()) return EndReason::MachineEnded;
  for (;;) {
    const auto message = command_->next_message();
    if (!message) say(message.error().message);
    if (message && !*message) return std::nullopt;
    if (message && (*message)->kind == GuestMessage::Kind::StandardError) {
      Progress& terminal = Progress::of_stderr();
      const std::string& text = (*message)->text;
      terminal.write(terminal.is_terminal() ? terminal_text(text) : text);
    }
    if (message && (*message)->kind == GuestMessage::Kind::Error) {
      say("the guest: " + (*message)->text);
    }
    command_ended_ = !message || (*message)->kind == GuestMessage::Kind::Exit;
    if (command_ended_) return EndReason::CommandEnded;
  }
}

void WatchedTarget::say_notices() {
  for (const std::string& line : target_->tracer().take_notices()) say(line);
  vmm::Machine* const machine = target_->machine();
  if (machine == nullptr) return;
  for (const std::string& line : machine->status().take_news()) say(line);
}

void WatchedTarget::say_losses() {
  const auto tell = [this](std::uint64_t lost, std::uint64_t& told, std::string_view why) {
    if (lost <= told) return;
    say(fmt::format("{} drop{}: {}", lost - told, lost - told == 1 ? "" : "s", why));
    told = lost;
  };
  const auto kernel = target_->tracer().statistics().kernel;
  tell(kernel.misses - kernel.forgotten - kernel.dropped - kernel.spoiled, losses_told_,
       "the guest went on alone because the host did not answer in time");
  const auto [from, until] = kernel.drop_span;
  std::string why = "the rings into which the guest records them were full";
  if (until > drops_told_until_) {
    why +=
        fmt::format(", between the timestamps {} and {}", std::max(from, drops_told_until_), until);
  }
  if (kernel.dropped > dropped_told_) drops_told_until_ = until;
  tell(kernel.dropped, dropped_told_, why);
  tell(kernel.spoiled, spoiled_told_, "the guest has changed what its rings held");
  tell(kernel.forgotten, forgotten_told_,
       "more calls were under way at a time than are remembered");
}

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
