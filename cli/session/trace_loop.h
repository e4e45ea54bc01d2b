// Tracing from the moment the probes are armed to its end: sleeps in poll(), takes the records of
// all engines at switchrate, passes on the output of the commands in the guests, and knows why it
// ends. A target that ends by itself leaves; the others are still traced.
// Does not: compile, enable, start or shut down machines (session.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cli/guest/host_process.h"
#include "cli/messages/signals.h"
#include "cli/output/output.h"
#include "cli/output/sink.h"
#include "cli/session/watched_target.h"
#include "cli/statistics/figures_file.h"
#include "providers/clock/host_clock.h"

namespace ringside::cli {

class TraceLoop {
 public:
  struct Streams {
    Sink& trace;
    int watched_fd;  // stdout, whose reader may go away while nothing is printed; -1: no matter
  };
  /// Says what became of a target that ended, MachineEnded, MachineLeft or KernelGone, while others
  /// go on.
  using TellEnd = std::function<void(WatchedTarget& target, EndReason reason)>;

  /// Output's targets are the same in the same order. With several `clock` is their tracers'. All
  /// must outlive the loop.
  TraceLoop(std::vector<WatchedTarget> targets, HostProcesses& processes, Output& output,
            const Settings& settings, EndEvents& events, Streams streams,
            providers::TscCalibration& clock, TellEnd tell_end);

  /// Leaves the figures of the targets there, once a second. It must outlive the loop.
  void leave_figures_in(FiguresFile& file) { figures_file_ = &file; }
  /// Structured output gets a record of each target's figures at its end.
  void record_figures() { records_figures_ = true; }
  /// By target, as they are now.
  std::vector<Figures> figures() const;

  /// Until something ends it. The probes are armed; the guests' commands have been let go. When the
  /// machines end, it is the last one's end; last_target() says whose.
  EndReason run();
  // The two halves of each round of run(), for who has other things to do in between.
  /// Takes and prints, where it is time for that.
  std::optional<EndReason> take_due();
  /// Sleeps until it is time to take again or something happens, `until` at the latest; then looks
  /// at what happened.
  std::optional<EndReason> wait(std::chrono::steady_clock::time_point until);
  /// Takes what there is, whether or not it is time for that.
  void take_now() { take_all(); }
  /// Stops the tracers and prints all that is left: END's records, aggregations, drops.
  void finish(EndReason reason);

  /// The one that end came from, where run() ended with the last machine.
  WatchedTarget& last_target() { return targets_[last_]; }
  /// Whether any target ended before the session did.
  bool lost_target() const { return live_ < targets_.size(); }
  /// False once finish() has told that a picture has nothing to show.
  bool output_is_whole() const { return output_is_whole_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool several() const { return targets_.size() > 1; }
  template <class Do>
  void for_each_live(Do action);
  bool any_exited();
  bool records_processes() const;
  bool any_kept();
  void take_all();
  void print_taken();
  Clock::time_point show_meanwhile();
  void report_drops();
  void leave_figures();
  void sleep_until(Clock::time_point time);
  /// True once every process that tracing waits for has ended.
  bool processes_ended();
  std::optional<EndReason> end_of_targets();
  void end_target(std::size_t index, EndReason reason);
  std::vector<std::uint32_t> take_last(std::size_t index);
  static void say_filled(const WatchedTarget& target, const std::vector<std::uint32_t>& cpus);
  void say_messages();

  std::vector<WatchedTarget> targets_;
  std::vector<bool> ended_;          // by target
  std::vector<std::uint64_t> kept_;  // by target: whose firings wait, as take_kept() told
  std::size_t live_, last_ = 0;
  HostProcesses& processes_;
  Output& output_;
  const Settings& settings_;
  EndEvents& events_;
  Streams streams_;
  providers::TscCalibration& clock_;
  TellEnd tell_end_;
  FiguresFile* figures_file_ = nullptr;
  bool records_figures_ = false;
  Clock::time_point next_take_{}, next_figures_{};
  Clock::time_point next_meanwhile_{};
  std::optional<Clock::time_point> next_status_;
  bool order_came_ = false, output_hung_up_ = false, buffer_full_ = false;
  bool output_is_whole_ = true;
};

}  // namespace ringside::cli
