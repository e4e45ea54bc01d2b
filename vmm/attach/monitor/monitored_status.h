// The state of a guest whose QEMU someone else started: whether it runs, and who has stopped it.
// Follows the monitor's events, tells the owner's stops from ours, and notices the end. Owns the
// thread that does so. One of MonitoredMachine's parts.
// Lock: mutex_, held while a command that changes whether the guest runs is under way; the
// monitor's own lock is taken under it. Threads: every function from any, start() and stop() from
// one.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "vmm/attach/monitor/monitor.h"
#include "vmm/attach/monitor/monitored_ram.h"
#include "vmm/base/unique_fd.h"
#include "vmm/machine.h"
#include "vmm/qemu/qmp.h"
#include "vmm/stop_times.h"

namespace ringside::vmm {

class MonitoredStatus final : public MachineStatus {
 public:
  /// All must outlive this. It tells `ram` when memory is plugged in, and `stop_times` when the
  /// owner stops the guest.
  MonitoredStatus(Monitor& monitor, MonitoredRam& ram, StopTimes& stop_times)
      : monitor_(monitor), ram_(ram), stop_times_(stop_times) {}
  ~MonitoredStatus() override { stop(); }
  MonitoredStatus(const MonitoredStatus&) = delete;
  MonitoredStatus& operator=(const MonitoredStatus&) = delete;

  /// Whether a migration of that state (QEMU docs: interop/qemu-qmp-ref, MigrationStatus) is under
  /// way: not before it, nor after it.
  static bool is_under_way(std::string_view migration);

  /// `pid`: the process whose end is the machine's.
  Result<void> start(pid_t pid);
  void stop();

  MachineState state() const override { return state_.load(std::memory_order_acquire); }
  int event_fd() const override { return state_event_.get(); }
  std::string console_tail() const override { return {}; }
  std::string exit_reason() const override;
  std::vector<std::string> take_news() override;
  std::optional<std::string> must_leave() const override;

  // For the vCPUs, which count pauses:

  /// Whether we stopped it, or found it stopped.
  enum class Stopped : std::uint8_t { ByUs, Before };
  /// Returns once no vCPU runs. `before` is called when it is certain that we will stop the guest.
  /// `before` may stop the guest itself; if it returns an error, the guest is let go.
  Result<Stopped> stop_guest(const std::function<Result<void>()>& before);
  /// After a stop_guest() that gave ByUs.
  Result<void> let_guest_go();
  /// Whether the connection was lost while the guest was being stopped or let go. The guest may
  /// stand still then; it is let go when the connection is back. A caller that has another way may
  /// let it go earlier.
  bool owes_go() const { return owes_go_.load(std::memory_order_acquire); }
  void note_that_it_went() { owes_go_.store(false, std::memory_order_release); }
  /// NotFound when the owner let the guest run while it was stopped for us: another pause may hold.
  Result<void> check_still_stopped();
  /// The same, but also asks QEMU. For waits that depend on the guest.
  Result<void> ask_whether_still_stopped();
  /// Somebody has seen that it ran, of which the event may come later.
  void note_that_it_ran();
  /// Whether QEMU has not answered a stop yet. The stop will come once the guest's I/O has ended,
  /// and somebody must let the guest go then.
  bool stop_may_come() const { return stop_may_come_.load(std::memory_order_acquire); }

  /// Whether vCPUs may have come or gone since this was last asked, as far as events tell. True at
  /// first. QEMU tells nothing when a vCPU is plugged in, but when the guest's kernel has taken it,
  /// before that can start it; and when one is gone.
  bool take_vcpus_may_differ() { return vcpus_may_differ_.exchange(false); }
  /// Who has taken it could not find out which there are.
  void note_that_vcpus_may_differ() { vcpus_may_differ_.store(true); }

 private:
  void run();
  Result<void> catch_up();
  void note(Monitor::Change change);
  void find_its_state();
  void note(const QmpEvent& event);
  void note_stop();
  void note_resume();
  void note_owners_stop();
  void note_migration(std::string_view status);
  void look_for_migration();
  bool has_ended(int wait) const;
  Result<void> ask_for_stop(const std::function<Result<void>()>& before);
  void undo_stop();
  Result<void> check_not_broken() const;
  void end(MachineState state, std::string cause);
  void tell(std::string news);
  void leave(std::string why);

  Monitor& monitor_;
  MonitoredRam& ram_;
  StopTimes& stop_times_;
  UniqueFd process_, state_event_, stop_event_;
  std::atomic<MachineState> state_{MachineState::Running};
  std::atomic<bool> stop_may_come_{false}, owes_go_{false}, vcpus_may_differ_{true};
  std::thread thread_;

  // Recursive: what stop_guest() calls before the stop may ask whether the guest stands still.
  std::recursive_mutex mutex_;
  QemuEnd end_;
  bool stopped_by_owner_ = false;  // as stop_times_ knows
  // How many of the next such events are ours. Without an order they may come late, when our next
  // stop is over.
  unsigned our_stops_ = 0, our_resumes_ = 0;
  bool held_ = false;    // from stop_guest() to let_guest_go()
  bool broken_ = false;  // it ran although it was held

  mutable std::mutex text_mutex_;  // no other lock is taken under it
  std::vector<std::string> news_;
  std::string cause_;
  std::optional<std::string> leave_;
};

}  // namespace ringside::vmm
