// The QEMU back end: a machine in a QEMU process that we started, seen through a shared memory
// file, its monitor and its gdbstub. Made by start_qemu (vmm/qemu/start_qemu.h). Its parts are RAM
// that is mapped here too, QemuVcpus and QemuWatcher. Threads: every function may be called from
// any thread. Does not: attach to a QEMU that somebody else started.
// Fire context: memory() yes, the rest no.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "vmm/machine.h"
#include "vmm/qemu/child_process.h"
#include "vmm/qemu/guardian.h"
#include "vmm/qemu/qemu_command.h"
#include "vmm/qemu/qemu_vcpus.h"
#include "vmm/qemu/qemu_watcher.h"
#include "vmm/shared_ram.h"

namespace ringside::vmm {

class QemuMachine final : public Machine {
 public:
  /// Our ends of the connections to the QEMU process.
  struct Links {
    UniqueFd monitor, gdb, console;
    std::optional<Guardian> guardian;  // of a guest that is kept
    bool as_is = false;                // no RAM was set aside in it
  };
  /// Takes over a QEMU that waits at its first instruction (-S) and lets the guest go.
  static Result<std::unique_ptr<QemuMachine>> take_over(unsigned vcpus, Accelerator accelerator,
                                                        SharedRam ram, ChildProcess child,
                                                        Links links);
  ~QemuMachine() override { shut_down(); }

  std::string_view kind() const override;
  pid_t host_process() const override { return child_.pid(); }
  GuestMemory& memory() override { return memory_; }
  Vcpus& vcpus() override { return vcpus_; }
  CodeWriter& code() override { return vcpus_; }
  MachineStatus& status() override { return watcher_; }
  std::optional<GuestMemory::Extent> reserved_memory() const override {
    return as_is_ ? std::nullopt : std::optional(kReservedMemory);
  }
  /// A guest that is kept (it has a guardian) runs on, and we disconnect from it.
  void shut_down() override;

  /// Keeps `fd` open as long as the machine lives.
  void keep_open(UniqueFd fd) { kept_open_.push_back(std::move(fd)); }

 private:
  QemuMachine(unsigned vcpus, Accelerator accelerator, SharedRam ram, ChildProcess child,
              QmpClient monitor, Links links);

  const Accelerator accelerator_;
  const bool as_is_;
  bool keep_ = false;  // set once all has started: a half-started guest is never kept
  SharedRam ram_;
  GuestMemory memory_;
  ChildProcess child_;
  QemuWatcher watcher_;
  std::vector<UniqueFd> kept_open_;
  std::optional<Guardian> guardian_;
  QemuVcpus vcpus_;
};

}  // namespace ringside::vmm
