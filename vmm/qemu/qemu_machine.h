// The QEMU back end: a machine in a QEMU process that we started, seen through a shared memory
// file, its monitor and its gdbstub. Made by start_qemu (vmm/machine.h).
// Threads: every function may be called from any thread. Pauses of several threads nest: the guest
// runs again when the last PausedMachine is gone. Lock: gdb_mutex_, held for one request to the
// gdbstub at a time; no other lock is taken under it.
// Does not: attach to a QEMU that somebody else started.
// Fire context: memory() yes, the rest no.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "vmm/machine.h"
#include "vmm/qemu/child_process.h"
#include "vmm/qemu/gdb_remote.h"
#include "vmm/qemu/guardian.h"
#include "vmm/qemu/qemu_command.h"
#include "vmm/qemu/qemu_watcher.h"
#include "vmm/shared_ram.h"

namespace ringside::vmm {

class QemuMachine final : public Machine {
 public:
  /// Our ends of what connects us to the QEMU process.
  struct Links {
    UniqueFd monitor, gdb, console, control, output;
    std::optional<Guardian> guardian;  // of a guest that is kept
  };
  /// Takes over a QEMU that waits at its first instruction (-S) and lets the guest go.
  static Result<std::unique_ptr<QemuMachine>> take_over(const MachineConfig& config,
                                                        Accelerator accelerator, SharedRam ram,
                                                        ChildProcess child, Links links);
  ~QemuMachine() override { shut_down(); }

  std::string_view kind() const override;
  unsigned vcpu_count() const override { return vcpus_; }
  GuestMemory& memory() override { return memory_; }
  std::optional<GuestMemory::Extent> reserved_memory() const override { return kReservedMemory; }
  MachineState state() override { return watcher_.state(); }
  int state_event_fd() const override { return watcher_.event_fd(); }
  std::string console_tail() const override { return watcher_.console_tail(); }
  std::string cause_of_death() const override { return watcher_.cause_of_death(); }
  std::optional<CommandPort> command_port() override;
  /// With MachineConfig::keep: lets the guest run on and turns away from it.
  void shut_down() override;

 private:
  QemuMachine(const MachineConfig& config, Accelerator accelerator, SharedRam ram,
              ChildProcess child, QmpClient monitor, Links links);

  Result<void> pause_vcpus() override;
  Result<void> resume_vcpus() override;
  Result<Registers> read_registers(unsigned vcpu) override;
  Result<void> write_code_bytes(std::span<const CodeWrite> writes) override;
  Result<void> check_alive();
  template <class T>
  Result<T> judge(Result<T> answer);

  const Accelerator accelerator_;
  const unsigned vcpus_;
  bool keep_ = false;  // set once all has started: a half-started guest is never kept
  SharedRam ram_;
  GuestMemory memory_;
  ChildProcess child_;
  QemuWatcher watcher_;
  UniqueFd control_, output_;
  std::optional<Guardian> guardian_;
  std::mutex gdb_mutex_;
  GdbRemote gdb_;
  unsigned pauses_ = 0;       // PausedMachines alive
  bool out_of_step_ = false;  // a request failed half-way: later answers cannot be told apart
};

}  // namespace ringside::vmm
