// A machine in a QEMU that someone else started, seen through its monitor and its memory.
// Everything is asked and checked before anything of it is touched. Its end of things: it is never
// ended by us, it keeps running or standing still as it was found, and what we opened is closed.
// Made by attach() (vmm/attach/attach.h). Fire context: memory() yes, the rest no.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "vmm/attach/attach_lock.h"
#include "vmm/attach/monitor.h"
#include "vmm/attach/monitored_ram.h"
#include "vmm/attach/monitored_status.h"
#include "vmm/attach/monitored_vcpus.h"
#include "vmm/machine.h"

namespace ringside::vmm {

class MonitoredMachine final : public Machine {
 public:
  /// Who leads to the machine. `pid` comes from somebody we believe, never from QEMU itself: its
  /// memory will be written.
  struct Access {
    std::unique_ptr<Monitor> monitor;
    pid_t pid = 0;
    int guarded_socket = -1;  // the monitor's, for a guardian after our death; -1: not ours
  };
  static Result<std::unique_ptr<MonitoredMachine>> attach(Access access);
  ~MonitoredMachine() override { shut_down(); }

  std::string_view kind() const override;
  pid_t host_process() const override { return pid_; }
  GuestMemory& memory() override { return ram_->memory(); }
  Vcpus& vcpus() override { return *vcpus_; }
  CodeWriter& code() override { return *vcpus_; }
  MachineStatus& status() override { return *status_; }
  /// Turns away and lets it run.
  void shut_down() override;

  /// As its owner calls it.
  const std::string& name() const { return name_; }

 private:
  MonitoredMachine(std::unique_ptr<Monitor> monitor, AttachLock lock)
      : lock_(std::move(lock)), monitor_(std::move(monitor)) {}

  AttachLock lock_;
  std::unique_ptr<Monitor> monitor_;
  pid_t pid_ = 0;
  std::string name_;
  Accelerator accelerator_ = Accelerator::Tcg;
  std::unique_ptr<MonitoredRam> ram_;
  std::unique_ptr<MonitoredStatus> status_;
  std::unique_ptr<MonitoredVcpus> vcpus_;
};

}  // namespace ringside::vmm
