// A machine in a process that someone else started, which is only read and never changed: any
// process that runs a guest by KVM, and a QEMU that translates its guest. RAM is found as in
// ProcessMachine. Registers are available if the guest runs by KVM, nobody else is attached to the
// process, and we may stop its threads for a moment. Otherwise an error tells why not. Used by
// look_at() (attach.h).
// Threads: every function may be called from any thread. Fire context: memory() yes, the rest no.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vmm/attach/host/attach_lock.h"
#include "vmm/attach/host/host_process.h"
#include "vmm/attach/process/process_vcpus.h"
#include "vmm/attach/ram/ram_backing.h"
#include "vmm/base/unique_fd.h"
#include "vmm/machine.h"

namespace ringside::vmm {

class ObservedProcess final : public Machine,
                              private Vcpus,
                              private CodeWriter,
                              private MachineStatus {
 public:
  /// Errors: NotFound, no such process; Io, which permission is missing; Unsupported, a process
  /// that runs no guest, or one of which neither memory nor registers tell anything.
  /// With Reach::Memory no registers are wanted, so others may attach to it while this looks.
  enum class Reach : std::uint8_t { All, Memory };
  static Result<std::unique_ptr<ObservedProcess>> look_at(pid_t pid, Reach reach = Reach::All);

  std::string_view kind() const override { return kind_; }
  GuestMemory& memory() override { return memory_; }
  using Machine::vcpus;
  /// None where their registers are not to be had.
  Vcpus& vcpus() override { return vcpus_ ? static_cast<Vcpus&>(*vcpus_) : *this; }
  CodeWriter& code() override { return *this; }
  pid_t host_process() const override { return pid_; }
  using Machine::status;
  MachineStatus& status() override { return *this; }
  void shut_down() override {}

  const std::string& name() const { return name_; }
  /// Why its guest stands still; empty when it does not, or nobody can tell.
  const std::optional<std::string>& stopped_by() const { return stopped_by_; }
  /// Why its registers are not known; empty when they are.
  const std::string& vcpu_trouble() const { return vcpu_trouble_; }
  /// Why its RAM was not found; empty when it was.
  const std::string& ram_trouble() const { return ram_trouble_; }

 private:
  ObservedProcess(pid_t pid, UniqueFd process, RamBacking ram)
      : pid_(pid), process_(std::move(process)), ram_(std::move(ram)) {}
  void find_ram();
  void find_vcpus(const HostProcess& process);

  unsigned count() const override { return 0; }
  Result<void> pause() override { return {}; }
  Result<void> resume() override { return {}; }
  Result<Registers> registers(unsigned vcpu) override;
  Result<void> write(std::span<const CodeWrite> writes) override;
  MachineState state() const override;
  int event_fd() const override { return -1; }
  std::string console_tail() const override { return {}; }

  const pid_t pid_;
  std::optional<AttachLock> lock_;
  UniqueFd process_;  // a pidfd
  RamBacking ram_;
  GuestMemory memory_;
  std::unique_ptr<ProcessVcpus> vcpus_;
  std::string kind_, name_, vcpu_trouble_, ram_trouble_;
  std::optional<std::string> stopped_by_;
};

}  // namespace ringside::vmm
