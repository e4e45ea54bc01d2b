// A QEMU's monitor through libvirt, which owns the socket: commands as monitor commands of the
// domain, events as libvirt passes them on. libvirt notes in the domain's log that somebody sent
// such commands ("tainted: custom-monitor"), and shows the domain as paused where we pause it.
// Lock: one, for a command at a time; no other lock is taken under it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "vmm/attach/attach_target.h"
#include "vmm/attach/monitor/monitor.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

class LibvirtMonitor final : public Monitor {
 public:
  /// One line that says what is in the way otherwise: no libvirt, no permission, no such domain,
  /// one that is shut off.
  static Result<std::unique_ptr<LibvirtMonitor>> connect(
      const DomainTarget& target, std::chrono::milliseconds timeout = std::chrono::seconds(30));
  ~LibvirtMonitor() override;
  /// The state of a domain as libvirt has it, in QEMU's words ("running", "paused"); its QEMU is
  /// not asked, and nothing is noted. The errors of connect().
  static Result<std::string> find_state(const DomainTarget& target,
                                        std::chrono::milliseconds timeout);

  const std::string& name() const;
  /// The QEMU that libvirt started for the domain. NotFound when it is on another host.
  Result<pid_t> find_process() const;

  using Monitor::execute;
  Result<nlohmann::json> execute(std::string_view command,
                                 const nlohmann::json& arguments) override;
  Result<void> pass_descriptor(std::string_view name, int descriptor) override;
  int event_fd() const override { return arrived_; }
  Result<std::vector<QmpEvent>> take_events() override;
  bool events_are_in_order() const override { return false; }
  /// libvirt has QEMU tell it.
  bool tells_of_migration() const override { return true; }

 private:
  struct Domain;
  LibvirtMonitor(std::shared_ptr<Domain> domain, std::chrono::milliseconds timeout);
  Result<nlohmann::json> send(std::string_view command, const nlohmann::json& arguments,
                              int descriptor);

  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::shared_ptr<Domain> domain_;  // a call that never ends keeps it
  int arrived_ = -1;                // the domain's eventfd
  bool silent_ = false;             // a call has not come back: no more are made
};

}  // namespace ringside::vmm
