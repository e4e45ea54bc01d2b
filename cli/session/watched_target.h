// One target while it is traced, as the trace loop sees it: the output and the end of the command
// in its guest, the target's own end, and notices about it.
// Used by the trace loop. Does not: wait, or print records.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/guest/guest_command.h"
#include "cli/output/sink.h"
#include "providers/tracer/target.h"

namespace ringside::cli {

enum class EndReason : std::uint8_t {
  Exit,
  BufferFull,  // bufpolicy=fill
  Signal,
  CommandEnded,
  MachineEnded,
  KernelGone,   // the machine runs on, without what was traced
  MachineLeft,  // it runs on and had to be turned away from
  OutputClosed,
};

class WatchedTarget {
 public:
  /// `command` is null without -c in the guest, `command_sink` where its output goes. All must
  /// outlive this.
  WatchedTarget(providers::Target& target, GuestCommand* command, Sink& command_sink);

  providers::Target& target() const { return *target_; }
  bool has_command() const { return command_ != nullptr; }
  /// "NAME: " in front of a line, where there are several.
  void set_line_start(std::string text) { line_start_ = std::move(text); }
  void say(std::string_view text) const;

  /// Appends the events that wake a sleep up; take_events() looks at the same ones, which begin at
  /// `at`.
  void add_events(std::vector<pollfd>& fds) const;
  void take_events(const std::vector<pollfd>& fds, std::size_t at);
  static constexpr std::size_t kEvents = 6;

  /// Passes on what the guest's command wrote, by whole lines, so that no line of ours gets into
  /// one of its own. False when nothing new came.
  bool pass_output();
  /// The same, also an unfinished line. For a command that has `Ended`, also output that still
  /// arrives.
  enum class Command : std::uint8_t { RunsOn, Ended };
  void pass_last_output(Command command);

  /// Whether a firing waits for its record to be printed; what let_go() takes. 0: none does.
  std::uint64_t take_kept();
  void let_go(std::uint64_t kept);

  /// Looks at the processes of which code was recorded, while they live.
  void look_at_processes();
  bool records_processes() const { return records_processes_; }

  /// KernelGone, CommandEnded, MachineEnded or MachineLeft, once it is so.
  std::optional<EndReason> end();

  void say_notices();
  /// Firings that were lost since the last call.
  void say_losses();

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<EndReason> take_control();
  void write_command_output(std::size_t size);

  providers::Target* target_;
  GuestCommand* command_;
  Sink* command_sink_;
  std::string line_start_;
  const bool records_processes_;
  bool control_ready_ = false, command_ended_ = false, command_output_open_ = true;
  std::string command_line_;  // of the guest's command, not ended yet
  Clock::time_point command_wrote_;
  std::uint64_t losses_told_ = 0, forgotten_told_ = 0, dropped_told_ = 0, spoiled_told_ = 0;
  std::uint64_t drops_told_until_ = 0;  // a timestamp
};

// Messages about a target that ended by itself: its machine ended or is migrated, or its kernel is
// gone.

/// Whether a guest that was run for its boot's sake has ended when it had booted.
bool ended_well(const providers::Target& target);
/// Tells why on stderr, and after a death what is known of it. `reason` is MachineEnded,
/// MachineLeft or KernelGone.
void tell_end(WatchedTarget& watched, EndReason reason);

}  // namespace ringside::cli
