// A machine in a QEMU that someone else started, seen through its monitor and its memory. We ask
// and check everything before we touch anything. When we detach, the machine keeps running or stays
// paused, as we found it, and we close what we opened. We never end the machine. Made by attach()
// (vmm/attach/attach.h). Fire context: memory() yes, the rest no.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/attach/host/attach_lock.h"
#include "vmm/attach/host/host_process.h"
#include "vmm/attach/host/pause_mark.h"
#include "vmm/attach/monitor/monitor.h"
#include "vmm/attach/monitor/monitored_ram.h"
#include "vmm/attach/monitor/monitored_status.h"
#include "vmm/attach/monitor/monitored_vcpus.h"
#include "vmm/attach/monitor/shim_card.h"
#include "vmm/machine.h"

namespace ringside::vmm {

class MonitoredMachine final : public Machine {
 public:
  /// The way to the machine. `pid` comes from somebody we believe, never from QEMU itself: its
  /// memory will be written.
  struct Access {
    std::unique_ptr<Monitor> monitor;
    pid_t pid = 0;
    int guarded_socket = -1;  // the monitor's, for a guardian after our death; -1: not ours
  };
  static Result<std::unique_ptr<MonitoredMachine>> attach(Access access, CardUse card);
  /// Only to read: nothing of the machine is written. So it works while a tracer or a debugger is
  /// attached, and in states in which tracing is not possible. If a pause would disturb somebody
  /// else, the guest is not stopped. kind() and name() are as usual.
  static Result<std::unique_ptr<MonitoredMachine>> look_at(Access access);
  /// Why a machine in that state, in QEMU's words, cannot be attached to; empty where it can.
  static std::string_view refusal(std::string_view status);
  /// Io, whose it is, when QEMU's only gdbserver is not free for us. Changes nothing.
  static Result<void> check_gdbserver(Monitor& monitor, const HostProcess& process);
  ~MonitoredMachine() override { shut_down(); }

  std::string_view kind() const override;
  bool is_others() const override { return true; }
  pid_t host_process() const override { return pid_; }
  GuestMemory& memory() override { return ram_->memory(); }
  Vcpus& vcpus() override { return *vcpus_; }
  CodeWriter& code() override { return *vcpus_; }
  MachineStatus& status() override { return *status_; }
  /// The memory of the card, where there is one.
  std::optional<GuestMemory::Extent> reserved_memory() const override;
  Result<void> give_back_reserved() override;
  std::string_view more_room() const override;
  /// Turns away and lets it run.
  void shut_down() override;

  /// The name that its owner has given it.
  const std::string& name() const { return name_; }
  /// Why its guest stood still when we came; empty when it ran.
  const std::optional<std::string>& stopped_by() const { return stopped_by_; }
  /// The ringside in whose pause we found it, which it had not survived; it goes on since.
  std::optional<pid_t> let_go_of() const { return let_go_of_; }
  /// If the machine is read while it runs: the reason why it is not stopped.
  const std::optional<std::string>& why_not_stopped() const { return why_not_stopped_; }
  /// Asks QEMU which drives it slows down, as their owner wants: one line each.
  std::vector<std::string> throttled_drives();

 private:
  explicit MonitoredMachine(std::unique_ptr<Monitor> monitor) : monitor_(std::move(monitor)) {}
  Result<std::string> end_left_pause();
  Result<void> meet(const Access& access);
  Result<void> take_up(const Access& access, MonitoredRam::Access ram, MonitoredVcpus::Reach reach,
                       CardUse card);
  Result<MonitoredVcpus::Reach> choose_reach(const Access& access);

  Result<void> find_memory(MonitoredRam::Access access, CardUse use);
  Result<void> take_out_old_card();
  Result<void> plug_card_in();

  std::optional<AttachLock> lock_;  // none: somebody else is attached, and we look
  std::unique_ptr<Monitor> monitor_;
  pid_t pid_ = 0;
  std::string name_;
  std::vector<unsigned> vcpu_numbers_;
  Accelerator accelerator_ = Accelerator::Tcg;
  std::optional<std::string> stopped_by_, why_not_stopped_;
  std::optional<pid_t> let_go_of_;
  std::optional<PauseMark> mark_;
  std::unique_ptr<MonitoredRam> ram_;
  std::unique_ptr<MonitoredStatus> status_;
  std::unique_ptr<MonitoredVcpus> vcpus_;
  std::optional<ShimCard> card_;
};

}  // namespace ringside::vmm
