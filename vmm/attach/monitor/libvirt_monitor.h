// A QEMU's monitor through libvirt, which owns the socket. Commands go as monitor commands of the
// domain; events come as libvirt passes them on. libvirt notes in the domain's log that somebody
// sent such commands ("tainted: custom-monitor"), and shows the domain as paused where we pause it.
// If libvirtd ends, its QEMUs run on; a thread here waits for the next libvirtd.
// Locks: one for a command at a time, and under it one for the connection; no others are taken.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "vmm/attach/host/attach_target.h"
#include "vmm/attach/monitor/monitor.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

class LibvirtMonitor final : public Monitor {
 public:
  /// The error is one line that says why not: no libvirt, no permission, no such domain, or a
  /// domain that is shut off.
  static Result<std::unique_ptr<LibvirtMonitor>> connect(
      const DomainTarget& target, std::chrono::milliseconds timeout = std::chrono::seconds(30));
  ~LibvirtMonitor() override;
  /// The state of a domain as libvirt has it, in QEMU's words ("running", "paused"); its QEMU is
  /// not asked, and nothing is noted. The errors of connect().
  static Result<std::string> find_state(const DomainTarget& target,
                                        std::chrono::milliseconds timeout);

  const std::string& name() const { return name_; }
  /// The QEMU that libvirt started for the domain. NotFound when it is on another host.
  Result<pid_t> find_process() const;

  using Monitor::execute;
  Result<nlohmann::json> execute(std::string_view command,
                                 const nlohmann::json& arguments) override;
  Result<void> pass_descriptor(std::string_view name, int descriptor) override;
  int event_fd() const override;
  Result<std::vector<QmpEvent>> take_events() override;
  std::vector<Change> take_changes() override;
  bool is_paused_by_owner() const override { return is_paused_by_owner_; }
  bool events_are_in_order() const override { return false; }
  /// libvirt has QEMU tell it.
  bool tells_of_migration() const override { return true; }

 private:
  struct Inbox;
  struct Domain;
  struct Search;
  LibvirtMonitor(std::shared_ptr<Domain> domain, const DomainTarget& target,
                 std::chrono::milliseconds timeout);
  Result<nlohmann::json> send(std::string_view command, const nlohmann::json& arguments,
                              int descriptor);

  std::shared_ptr<Domain> current_domain();

  const std::chrono::milliseconds timeout_;
  const std::string name_, uuid_, uri_;
  const bool is_paused_by_owner_;  // when we came
  const std::shared_ptr<Inbox> inbox_;
  std::mutex mutex_;
  bool silent_ = false;  // a call has not come back: no more are made

  std::mutex connection_mutex_;     // what follows
  std::shared_ptr<Domain> domain_;  // a call that never ends keeps it; null: it is searched for
  std::shared_ptr<Search> search_;
  std::vector<Change> changes_;
};

}  // namespace ringside::vmm
