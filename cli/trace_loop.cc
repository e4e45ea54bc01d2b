#include "cli/trace_loop.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/messages.h"

namespace ringside::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// exit() is a flag that the fire thread sets; looking at it costs one load.
constexpr milliseconds kExitCheck{50};
// A process that ends sooner after its first record is not known by name.
constexpr milliseconds kProcessLook{2};
// A guest can have processes that are slow to look at, and ever new ones.
constexpr milliseconds kMostLooking{20};
// Rates of dtrace scripts can be absurdly high, and 0 means as often as can be; the guest would pay
// for each exchange.
constexpr nanoseconds kShortestInterval = milliseconds(1);
// What a command that has ended left behind fits into sockets and a pipe or two. Whoever writes on
// in the guest after it must not keep us.
constexpr unsigned kMostLastOutputs = 64;  // of up to 1 MiB each
// A serial line brings a command's line in pieces, and a busy host lets time pass between them. A
// line that is not ended for so long, or that is longer, is passed on as it is.
constexpr milliseconds kLinePatience{500};
constexpr std::size_t kLongestHeldLine = 4096;

}  // namespace

EndReason TraceLoop::run() {
  Clock::time_point next_harvest = Clock::now();
  Clock::time_point next_status = Clock::now() + parts_.settings->status_interval;
  for (;;) {
    if (parts_.engine->exit_status()) {
      harvest();  // END finds its buffer empty
      return EndReason::Exit;
    }
    const Clock::time_point now = Clock::now();
    if (now >= next_harvest) {
      harvest();
      const Settings& settings = *parts_.settings;
      next_harvest = now + std::max(std::min(settings.switch_interval, settings.aggregate_interval),
                                    kShortestInterval);
    }
    if (now >= next_status) {
      report_drops();
      next_status = now + std::max(parts_.settings->status_interval, kShortestInterval);
    }
    if (buffer_full_) return EndReason::BufferFull;
    if (parts_.trace_sink->closed() || output_hung_up_) return EndReason::OutputClosed;
    const milliseconds nap = parts_.user_names != nullptr ? kProcessLook : kExitCheck;
    sleep_until(std::min({next_harvest, next_status, now + nap}));
    look_at_processes();
    if (signal_came_) return EndReason::Signal;
    if (processes_ended()) return EndReason::CommandEnded;
    pass_output();
    // The other kernel knows nothing of the command.
    if (parts_.tracer->loss()) return EndReason::KernelGone;
    // The command's end before the machine's: `poweroff` as a command ends both.
    if (const auto end = handle_control()) return *end;
    if (parts_.machine != nullptr && parts_.machine->state() != vmm::MachineState::Running) {
      return EndReason::MachineEnded;
    }
  }
}

void TraceLoop::sleep_until(Clock::time_point time) {
  const bool has_command = parts_.command != nullptr;
  std::vector<pollfd> fds{
      {parts_.signals->fd(), POLLIN, 0},
      {parts_.machine != nullptr ? parts_.machine->status().event_fd() : -1, POLLIN, 0},
      {has_command ? parts_.command->control_fd() : -1, POLLIN, 0},
      {has_command && command_output_open_ ? parts_.command->output_fd() : -1, POLLIN, 0},
      {parts_.watched_fd, 0, 0},
  };
  if (parts_.processes != nullptr) {
    for (const int fd : parts_.processes->live_fds()) fds.push_back({fd, POLLIN, 0});
  }
  const auto left = std::chrono::ceil<milliseconds>(time - Clock::now()).count();
  ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
  signal_came_ = parts_.signals->take();
  control_ready_ = fds[2].revents != 0;
  output_hung_up_ = (fds[4].revents & (POLLERR | POLLHUP)) != 0;
}

bool TraceLoop::processes_ended() {
  if (parts_.processes == nullptr || parts_.processes->empty()) return false;
  for (const std::string& line : parts_.processes->take_ended()) {
    if (!parts_.settings->quiet) say(line);
  }
  return !parts_.processes->any_live();
}

void TraceLoop::harvest() {
  const dif::Harvest harvest = parts_.engine->take();
  buffer_full_ = !harvest.filled.empty();
  parts_.output->consume(harvest);
  parts_.trace_sink->flush();
  for (const std::string& line : parts_.output->take_messages()) say(line);
  for (const std::string& line : parts_.tracer->take_notices()) say(line);
}

void TraceLoop::report_drops() {
  for (const std::string& line : parts_.output->take_drops()) say(line);
  const std::uint64_t lost = parts_.tracer->lost_firings();
  if (lost > lost_reported_) {
    const std::uint64_t more = lost - lost_reported_;
    say(fmt::format("{} drop{}: the guest went on alone because the host did not answer in time",
                    more, more == 1 ? "" : "s"));
    lost_reported_ = lost;
  }
}

void TraceLoop::look_at_processes() {
  if (parts_.user_names == nullptr) return;
  const Clock::time_point end = Clock::now() + kMostLooking;
  while (const auto pid = parts_.engine->next_recorded_process()) {
    parts_.user_names->look_at(*pid);
    if (Clock::now() >= end) return;
  }
}

bool TraceLoop::pass_output() {
  if (parts_.command == nullptr || !command_output_open_) return false;
  const std::size_t held = command_line_.size();
  command_output_open_ = parts_.command->read_output(command_line_);
  const bool came = command_line_.size() > held;
  const Clock::time_point now = Clock::now();
  if (came) command_wrote_ = now;
  const std::size_t whole = command_line_.rfind('\n') + 1;  // 0 when there is none
  const bool wait = command_output_open_ && now - command_wrote_ < kLinePatience &&
                    command_line_.size() - whole <= kLongestHeldLine;
  write_command_output(wait ? whole : command_line_.size());
  return came;
}

void TraceLoop::write_command_output(std::size_t size) {
  if (size == 0) return;
  parts_.command_sink->write(std::string_view(command_line_).substr(0, size));
  parts_.command_sink->flush();
  command_line_.erase(0, size);
}

std::optional<EndReason> TraceLoop::handle_control() {
  if (parts_.command == nullptr || !control_ready_) return std::nullopt;
  if (!parts_.command->read_control()) return EndReason::MachineEnded;
  for (;;) {
    const auto message = parts_.command->next_message();
    if (!message) {
      say(message.error().message);
      return EndReason::CommandEnded;
    }
    if (!*message) return std::nullopt;
    if ((*message)->kind == GuestMessage::Kind::Error) say("the guest: " + (*message)->text);
    if ((*message)->kind == GuestMessage::Kind::Exit) return EndReason::CommandEnded;
  }
}

void TraceLoop::finish(EndReason reason) {
  // Whoever interrupts a second time wants no more waiting.
  parts_.signals->restore_defaults();
  parts_.tracer->stop();
  // What has ended says no more, so all of it can be had, unless the guest lies about the end.
  const bool ended = reason == EndReason::CommandEnded || reason == EndReason::MachineEnded ||
                     reason == EndReason::KernelGone;
  for (unsigned passes = 0; pass_output() && ended && passes < kMostLastOutputs;) ++passes;
  write_command_output(command_line_.size());
  const bool text = parts_.settings->format == OutputFormat::Text;
  if (reason == EndReason::Signal && text) parts_.trace_sink->write("\n");
  const dif::Harvest last = parts_.engine->take_quiescent();
  parts_.output->consume(last);
  parts_.output->finish();
  parts_.trace_sink->flush();
  for (const std::string& line : parts_.output->take_messages()) say(line);
  for (const std::string& line : parts_.tracer->take_notices()) say(line);
  for (const std::uint32_t cpu : last.filled) {
    say(fmt::format("the buffer of CPU {} is full, which ends tracing (bufpolicy=fill)", cpu));
  }
  report_drops();
}

}  // namespace ringside::cli
