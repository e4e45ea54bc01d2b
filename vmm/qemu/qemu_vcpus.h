// The vCPUs of a QEMU, and the writing of code, both through its gdbstub: the translator must be
// told when code changes. Two of QemuMachine's parts.
// Lock: one for a request to the gdbstub at a time; no other lock is taken under it.
// Threads: every function from any. Pauses of several threads nest.
#pragma once

#include <mutex>

#include "vmm/code_writer.h"
#include "vmm/machine.h"
#include "vmm/qemu/child_process.h"
#include "vmm/qemu/gdb_remote.h"
#include "vmm/qemu/qemu_watcher.h"

namespace ringside::vmm {

class QemuVcpus final : public Vcpus, public CodeWriter {
 public:
  /// Decides what happens if QEMU does not answer: a guest that ends with us is killed; a guest
  /// that stays is left alone, even if it stands still.
  enum class Life : std::uint8_t { EndsWithUs, Stays };

  /// `gdb`: connected to the stub of a QEMU that waits at its first instruction. `memory` is the
  /// guest's. All references must outlive this.
  QemuVcpus(unsigned count, UniqueFd gdb, const GuestMemory& memory, ChildProcess& child,
            QemuWatcher& watcher)
      : count_(count), memory_(memory), child_(child), watcher_(watcher), gdb_(std::move(gdb)) {}

  /// Lets the guest go.
  Result<void> start();
  void set_life(Life life) { life_ = life; }
  /// Disconnects from a guest that stays: makes sure that it runs, and that QEMU has read so.
  void let_go();

  unsigned count() const override { return count_; }

 private:
  Result<void> pause() override;
  Result<void> resume() override;
  Result<Registers> registers(unsigned vcpu) override;
  Result<void> write(std::span<const CodeWrite> writes) override;
  Result<void> check_alive();
  template <class T>
  Result<T> judge(Result<T> answer);

  const unsigned count_;
  Life life_ = Life::EndsWithUs;
  const GuestMemory& memory_;
  ChildProcess& child_;
  QemuWatcher& watcher_;
  std::mutex mutex_;
  GdbRemote gdb_;
  unsigned pauses_ = 0;       // PausedMachines alive
  bool out_of_step_ = false;  // a request failed half-way: later answers cannot be told apart
};

}  // namespace ringside::vmm
