// The thread that watches a QEMU: reads the guest's console and QEMU's standard error (a full
// socket would stall the guest), follows QEMU's events, and notices its end. Used by QemuMachine.
// Threads: start() and stop() on one, all else on any. Lock: text_mutex_, held for copies only.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/machine.h"
#include "vmm/qemu/child_process.h"
#include "vmm/qemu/qmp.h"
#include "vmm/text_tail.h"

namespace ringside::vmm {

class QemuWatcher final : public MachineStatus {
 public:
  /// `child` must outlive the watcher.
  QemuWatcher(ChildProcess& child, QmpClient monitor, UniqueFd console);
  ~QemuWatcher() override { stop(); }
  QemuWatcher(const QemuWatcher&) = delete;
  QemuWatcher& operator=(const QemuWatcher&) = delete;

  /// Starts the thread. Io when the host gives no descriptor or thread.
  Result<void> start();
  /// Ends the thread, whether QEMU has ended or not. Idempotent.
  void stop();
  /// Waits until QEMU has ended and its end has been judged and reaped.
  void await_end();

  MachineState state() const override { return state_.load(std::memory_order_acquire); }
  int event_fd() const override { return state_event_.get(); }
  std::string console_tail() const override;
  std::string exit_reason() const override;
  bool was_ended_by_us() const override { return ended_by_us_.load(std::memory_order_acquire); }
  /// Before QEMU is killed.
  void note_ended_by_us() { ended_by_us_.store(true, std::memory_order_release); }
  /// While set, a stop that QEMU reports is a pause of ours. For any other stop, the watcher asks
  /// QEMU for the reason.
  void set_paused_by_us(bool paused) { paused_by_us_.store(paused, std::memory_order_release); }

 private:
  void run();
  void drain_text();
  void follow_monitor();
  bool check_why_stopped();
  void finish();

  ChildProcess& child_;
  QmpClient monitor_;
  bool monitor_open_ = true;
  UniqueFd console_;
  bool errors_open_ = true;
  UniqueFd state_event_, stop_event_;
  std::atomic<MachineState> state_{MachineState::Running};
  std::atomic<bool> paused_by_us_{false}, ended_by_us_{false};
  QemuEnd end_;
  mutable std::mutex text_mutex_;
  TextTail console_text_, error_text_;
  std::thread thread_;
};

/// Appends what can be read from `fd` now; false once it has come to its end.
bool drain_into(TextTail& text, int fd);

}  // namespace ringside::vmm
