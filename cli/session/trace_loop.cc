#include "cli/session/trace_loop.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cli/messages/messages.h"
#include "vmm/base/end_order.h"

namespace ringside::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// exit() is a flag that the fire thread sets; looking at it costs one load.
constexpr milliseconds kExitCheck{50};
// A process that ends sooner after its first record is not known by name.
constexpr milliseconds kProcessLook{2};
// Rates of dtrace scripts can be absurdly high, and 0 means as often as can be; the guest would pay
// for each exchange.
constexpr nanoseconds kShortestInterval = milliseconds(1);
constexpr milliseconds kFiguresEvery{1000};

}  // namespace

TraceLoop::TraceLoop(std::vector<WatchedTarget> targets, HostProcesses& processes, Output& output,
                     const Settings& settings, EndEvents& events, Streams streams,
                     providers::TscCalibration& clock, TellEnd tell_end)
    : targets_(std::move(targets)),
      ended_(targets_.size()),
      kept_(targets_.size()),
      live_(targets_.size()),
      processes_(processes),
      output_(output),
      settings_(settings),
      events_(events),
      streams_(streams),
      clock_(clock),
      tell_end_(std::move(tell_end)) {
  for (WatchedTarget& each : targets_) {
    if (several()) each.set_line_start(each.target().name() + ": ");
  }
}

template <class Do>
void TraceLoop::for_each_live(Do action) {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (!ended_[i]) action(i, targets_[i]);
  }
}

EndReason TraceLoop::run() {
  for (;;) {
    if (const auto end = take_due()) return *end;
    if (const auto end = wait(Clock::time_point::max())) return *end;
  }
}

std::optional<EndReason> TraceLoop::take_due() {
  if (any_exited()) {
    take_all();  // END finds its buffer empty
    return EndReason::Exit;
  }
  const Clock::time_point now = Clock::now();
  if (now >= next_take_ || any_kept()) {
    take_all();
    next_take_ = now + std::max(std::min(settings_.switch_interval, settings_.aggregate_interval),
                                kShortestInterval);
  }
  if (!next_status_ || now >= *next_status_) {
    if (next_status_) report_drops();
    next_status_ = now + std::max(settings_.status_interval, kShortestInterval);
  }
  if (now >= next_figures_) {
    leave_figures();
    next_figures_ = now + kFiguresEvery;
  }
  if (settings_.meanwhile_interval && now >= next_meanwhile_) next_meanwhile_ = show_meanwhile();
  if (buffer_full_) return EndReason::BufferFull;
  if (streams_.trace.closed() || output_hung_up_) return EndReason::OutputClosed;
  return std::nullopt;
}

std::optional<EndReason> TraceLoop::wait(Clock::time_point until) {
  const milliseconds nap = records_processes() ? kProcessLook : kExitCheck;
  sleep_until(std::min({next_take_, next_status_.value_or(until), Clock::now() + nap, until}));
  for_each_live([](std::size_t, WatchedTarget& each) {
    each.target().admit_modules();
    each.target().follow_files();
    each.target().serve_stacks();
    each.look_at_processes();
  });
  if (order_came_) return EndReason::Signal;
  if (processes_ended()) return EndReason::CommandEnded;
  return end_of_targets();
}

bool TraceLoop::any_exited() {
  return std::ranges::any_of(targets_, [](WatchedTarget& each) {
    return each.target().engine().exit_status().has_value();
  });
}

bool TraceLoop::records_processes() const {
  return std::ranges::any_of(targets_, &WatchedTarget::records_processes);
}

void TraceLoop::sleep_until(Clock::time_point time) {
  constexpr std::size_t kOwn = 2;
  std::vector<pollfd> fds{{events_.fd(), POLLIN, 0}, {streams_.watched_fd, 0, 0}};
  for_each_live([&](std::size_t, WatchedTarget& each) { each.add_events(fds); });
  for (const int fd : processes_.live_fds()) fds.push_back({fd, POLLIN, 0});
  const auto left = std::chrono::ceil<milliseconds>(time - Clock::now()).count();
  ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
  order_came_ = end_order() != EndOrder::None;
  output_hung_up_ = (fds[1].revents & (POLLERR | POLLHUP)) != 0;
  std::size_t at = kOwn;
  for_each_live([&](std::size_t, WatchedTarget& each) {
    each.take_events(fds, std::exchange(at, at + WatchedTarget::kEvents));
  });
}

bool TraceLoop::processes_ended() {
  if (processes_.empty()) return false;
  for (const std::string& line : processes_.take_ended()) {
    if (!settings_.quiet) say(line);
  }
  return !processes_.any_live();
}

/// The guests' commands end tracing together, as several -c do. A machine that ends takes its
/// target out, the last one ends tracing.
std::optional<EndReason> TraceLoop::end_of_targets() {
  std::size_t commands = 0, commands_ended = 0;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (ended_[i]) continue;
    targets_[i].pass_output();
    const auto end = targets_[i].end();
    if (end && *end != EndReason::CommandEnded) {
      last_ = i;
      if (live_ == 1) return end;
      end_target(i, *end);
      continue;
    }
    if (targets_[i].has_command() || targets_[i].target().follows_process()) ++commands;
    if (end) ++commands_ended;
  }
  if (commands != 0 && commands == commands_ended) return EndReason::CommandEnded;
  return std::nullopt;
}

void TraceLoop::end_target(std::size_t index, EndReason reason) {
  WatchedTarget& target = targets_[index];
  target.target().tracer().stop();
  target.pass_last_output(WatchedTarget::Command::Ended);
  const auto filled = take_last(index);
  output_.print_until(clock_.now());
  output_.leave(index);
  streams_.trace.flush();
  say_messages();
  target.say_notices();
  say_filled(target, filled);
  tell_end_(target, reason);
  ended_[index] = true;
  --live_;
}

bool TraceLoop::any_kept() {
  bool any = false;
  for_each_live([&](std::size_t i, WatchedTarget& each) {
    kept_[i] = std::max(kept_[i], each.take_kept());
    any |= kept_[i] != 0;
  });
  return any;
}

/// A firing after the first target was asked may have come before something that the others have
/// not handed over yet, so it waits for the next time. A firing that waits for a record printed now
/// goes on.
void TraceLoop::take_all() {
  any_kept();
  print_taken();
  for_each_live(
      [this](std::size_t i, WatchedTarget& each) { each.let_go(std::exchange(kept_[i], 0)); });
}

void TraceLoop::print_taken() {
  if (!several()) {
    const dif::TraceData trace_data = targets_.front().target().engine().take();
    buffer_full_ = !trace_data.filled.empty();
    output_.consume(trace_data);
  } else {
    const std::uint64_t asked = clock_.now();
    for_each_live([this](std::size_t i, WatchedTarget& each) {
      dif::TraceData trace_data = each.target().engine().take();
      buffer_full_ |= !trace_data.filled.empty();
      output_.add(i, std::move(trace_data));
    });
    output_.print_until(asked);
  }
  streams_.trace.flush();
  say_messages();
  for_each_live([](std::size_t, WatchedTarget& each) { each.say_notices(); });
}

/// Shows the aggregations; when to do it again. A tenth of a CPU's time is enough for it.
TraceLoop::Clock::time_point TraceLoop::show_meanwhile() {
  constexpr int kShare = 10;
  const Clock::time_point begun = Clock::now();
  if (output_.show_aggregations_meanwhile()) streams_.trace.flush();
  const nanoseconds spent = Clock::now() - begun;
  return begun + std::max({*settings_.meanwhile_interval, spent * kShare, kShortestInterval});
}

void TraceLoop::say_messages() {
  for (const std::string& line : output_.take_messages()) say(line);
}

void TraceLoop::report_drops() {
  for (const std::string& line : output_.take_drops()) say(line);
  for (WatchedTarget& each : targets_) each.say_losses();
}

std::vector<Figures> TraceLoop::figures() const {
  std::vector<Figures> all;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const providers::Target& target = targets_[i].target();
    all.push_back({target.name(), output_.drops(i), output_.drops_by_clause(i),
                   target.tracer().statistics()});
  }
  return all;
}

void TraceLoop::leave_figures() {
  if (figures_file_ != nullptr) figures_file_->write(figures());
}

/// Everything that is left of a target whose tracer has stopped; the CPUs whose buffers are full.
std::vector<std::uint32_t> TraceLoop::take_last(std::size_t index) {
  dif::TraceData last = targets_[index].target().engine().take_quiescent();
  std::vector<std::uint32_t> filled = last.filled;
  if (several()) {
    output_.add(index, std::move(last));
  } else {
    output_.consume(last);
  }
  return filled;
}

void TraceLoop::say_filled(const WatchedTarget& target, const std::vector<std::uint32_t>& cpus) {
  for (const std::uint32_t cpu : cpus) {
    target.say(
        fmt::format("the buffer of CPU {} is full, which ends tracing (bufpolicy=fill)", cpu));
  }
}

void TraceLoop::finish(EndReason reason) {
  // No END before the last of all other firings: they share what END may sum up.
  for_each_live([](std::size_t, WatchedTarget& each) { each.target().tracer().halt(); });
  if (any_kept()) take_all();
  for_each_live([](std::size_t, WatchedTarget& each) { each.target().tracer().stop(); });
  // Whoever has interrupted a second time wants no more waiting, and hears what had to stay.
  if (end_order() == EndOrder::Hurried) {
    for_each_live([](std::size_t, WatchedTarget& each) { each.say_notices(); });
  }
  events_.settle_with_guest();
  // A command or guest that has ended says no more, so all its output can be had, unless the guest
  // lies about the end.
  const bool ended = reason == EndReason::CommandEnded || reason == EndReason::MachineEnded ||
                     reason == EndReason::KernelGone;
  for_each_live([&](std::size_t, WatchedTarget& each) {
    each.pass_last_output(ended ? WatchedTarget::Command::Ended : WatchedTarget::Command::RunsOn);
  });
  const bool text = settings_.format == OutputFormat::Text;
  if (reason == EndReason::Signal && text) streams_.trace.write("\n");
  std::vector<std::vector<std::uint32_t>> filled(targets_.size());
  for_each_live([&](std::size_t i, WatchedTarget&) { filled[i] = take_last(i); });
  output_.print_until(UINT64_MAX);
  if (records_figures_) {
    const std::vector<Figures> all = figures();
    for (std::size_t i = 0; i < all.size(); ++i) output_.statistics(i, figures_tree(all[i]));
  }
  if (settings_.meanwhile_interval) output_.show_aggregations_meanwhile();
  const auto written = output_.finish();
  streams_.trace.flush();
  say_messages();
  if (!written) say(written.error().message);
  output_is_whole_ = written.has_value();
  for_each_live([&](std::size_t i, WatchedTarget& each) {
    each.say_notices();
    say_filled(each, filled[i]);
  });
  report_drops();
}

}  // namespace ringside::cli
