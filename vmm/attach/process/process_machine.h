// A machine in a process that someone else started, any that runs its guest by KVM: it is not asked
// and need not know. The parts: RAM as the process maps it (ram_backing.h), ProcessVcpus, and a
// pidfd that says when it has ended. Nobody tells what happens to its guest meanwhile: one that
// resets itself is noticed by its memory, above; what is plugged in, by the process and by what the
// kernel counts.
// Writes go around KVM's dirty log, so a migration or snapshot that runs meanwhile may miss them or
// take them along.
// Threads: every function may be called from any thread. Does not: end the process, ever.
// Fire context: memory() yes, the rest no.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vmm/attach/attach_lock.h"
#include "vmm/attach/process/host_process.h"
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
  /// Of the kernel in it, as it was found.
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
