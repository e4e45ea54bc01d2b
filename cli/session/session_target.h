// The targets of a session, in the order of their numbers (vmid). The session keeps more for each
// target: the command in its guest, its process, and how the output shows it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/guest/guest.h"
#include "cli/guest/guest_command.h"
#include "cli/options/settings.h"
#include "cli/output/target_view.h"
#include "cli/program/environment.h"
#include "providers/tracer/target.h"
#include "vmm/base/result.h"
#include "vmm/machine.h"

namespace ringside::cli {

struct SessionTarget {
  /// `attached` is not null. Takes the pause and the command of `guest`, whose machine and kernel
  /// are the target's by now.
  SessionTarget(std::unique_ptr<providers::Target> attached, Guest guest, std::int64_t pid,
                std::int32_t vmid);

  std::unique_ptr<providers::Target> target;
  std::unique_ptr<vmm::PausedMachine> paused_at_arrival;  // until its probes stand
  std::optional<GuestCommand> command;                    // -c in the guest
  std::int64_t process;                                   // $target; 0 for none
  std::int32_t number;                                    // vmid
  std::optional<TracerEnvironment> environment;           // until all is bound and enabled
  TargetView view;
};

class SessionTargets {
 public:
  /// `several`: whether lines about one have to say which.
  explicit SessionTargets(bool several) : several_(several) {}

  /// A new one, the last.
  void add(std::unique_ptr<providers::Target> attached, Guest guest, std::int64_t pid);

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }
  SessionTarget& front() { return all_.front(); }
  const SessionTarget& front() const { return all_.front(); }
  SessionTarget& operator[](std::size_t number) { return all_[number]; }
  bool several() const { return several_; }

  /// The status of the first exit() that a program has run, on whichever target.
  std::optional<int> exit_status() const;

  /// Tells, once, which parts are left out of a guest that shows too much, or too little.
  void tell_omissions() const;
  /// For a refusal of what a kernel's types may mend: how to give them to a kernel that carries
  /// none, after "; ". Empty where all kernels have theirs.
  std::string way_to_types() const;
  /// The beginning of a line about this one: "NAME: " where there are several.
  std::string line_start(const SessionTarget& entry) const;
  /// Says a line about this one on stderr.
  void print_line(const SessionTarget& entry, const std::string& text) const;
  /// The result; where it is an error, its message begins with whom it is about.
  template <class T>
  Result<T> named(const SessionTarget& entry, Result<T> result) const {
    if (!result) result.error().message = line_start(entry) + result.error().message;
    return result;
  }

 private:
  std::vector<SessionTarget> all_;
  bool several_;
};

// For -x debug: how long each phase of a run took, and how long it paused the guests.

using Clock = std::chrono::steady_clock;

/// Says on stderr how long ago `since` was, under -x debug: "compiled in 1.5 ms".
void report_time(const Settings& settings, std::string_view phase, Clock::time_point since);
/// Says of each machine how often and how long it has been made to stand still until now.
void report_pauses(const Settings& settings, const SessionTargets& targets);

}  // namespace ringside::cli
