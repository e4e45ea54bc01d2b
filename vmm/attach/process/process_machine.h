// A machine in any process that runs its guest by KVM and that someone else started. The process is
// not asked for anything and need not know of us. The parts: RAM as the process maps it
// (ram_backing.h), ProcessVcpus, and a pidfd that tells when the process has ended. Nobody tells us
// what happens to the guest. The layers above notice a reset by the guest's memory. Plugged-in
// memory and vCPUs are noticed in the process and in the kernel's counts.
// Writes go around KVM's dirty log, so a migration or snapshot that runs meanwhile may miss them or
// take them along.
// Threads: every function may be called from any thread. Does not: end the process, ever.
// Fire context: memory() yes, the rest no.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vmm/attach/host/attach_lock.h"
#include "vmm/attach/host/host_process.h"
#include "vmm/attach/process/process_vcpus.h"
#include "vmm/attach/ram/ram_backing.h"
#include "vmm/base/unique_fd.h"
#include "vmm/machine.h"

namespace ringside::vmm {

class ProcessMachine final : public Machine, private MachineStatus {
 public:
  /// Asks and proves everything first; nothing is touched but that threads which may be vCPUs'
  /// stand still for a moment. Errors: NotFound, no such process; Io, which permission is missing;
  /// Limit, which process is attached already; Unsupported, a fact that does not hold.
  static Result<std::unique_ptr<ProcessMachine>> attach(pid_t pid);

  std::string_view kind() const override { return kind_; }
  bool is_others() const override { return true; }
  GuestMemory& memory() override { return memory_; }
  Vcpus& vcpus() override { return *vcpus_; }
  CodeWriter& code() override { return *vcpus_; }
  pid_t host_process() const override { return pid_; }
  MachineStatus& status() override { return *this; }
  /// Turns away: nothing of it is ours.
  void shut_down() override {}

  const std::string& name() const { return name_; }
  /// The release of the guest's kernel, as found when we attached.
  const std::string& release() const { return release_; }

 private:
  ProcessMachine(pid_t pid, AttachLock lock, UniqueFd process, RamBacking ram)
      : pid_(pid), lock_(std::move(lock)), process_(std::move(process)), ram_(std::move(ram)) {}

  MachineState state() const override;
  int event_fd() const override { return process_.get(); }
  std::string console_tail() const override { return {}; }
  std::string exit_reason() const override;
  std::vector<std::string> take_news() override;

  const pid_t pid_;
  AttachLock lock_;
  UniqueFd process_;  // a pidfd
  RamBacking ram_;
  GuestMemory memory_;
  std::unique_ptr<ProcessVcpus> vcpus_;
  std::string kind_, name_, release_;
  GuestPhys frames_at_{0};    // where the guest's kernel has the number of its RAM's last page
  std::uint64_t frames_ = 0;  // that number, as far as it was told
  unsigned vcpus_told_ = 0;
};

}  // namespace ringside::vmm
