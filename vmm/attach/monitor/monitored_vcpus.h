// The vCPUs of a QEMU that someone else started, and the writing of its code. The monitor stops the
// vCPUs and lets them go on. Registers and code go through a gdbstub, which QEMU opens for us over
// a descriptor: a translator must be told when code changes. A caller that only reads gets the
// registers printed by the monitor, without a gdbstub. Two of MonitoredMachine's parts.
// Lock: one for all; the status's and the monitor's are taken under it.
// Threads: every function from any. Pauses of several threads nest.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "vmm/attach/host/pause_mark.h"
#include "vmm/attach/monitor/monitor.h"
#include "vmm/attach/monitor/monitored_status.h"
#include "vmm/code_writer.h"
#include "vmm/guest_memory.h"
#include "vmm/machine.h"
#include "vmm/qemu/gdb_remote.h"
#include "vmm/qemu/guardian.h"
#include "vmm/qemu/qemu_command.h"

namespace ringside::vmm {

class MonitoredVcpus final : public Vcpus, public CodeWriter {
 public:
  struct Parts {
    Monitor& monitor;
    MonitoredStatus& status;
    GuestMemory& memory;
    PauseMark& mark;
  };
  /// LookWhileItRuns: a pause stops nobody. Registers are of one moment then, a vCPU's each, and
  /// what they lead to may have changed since.
  enum class Reach : std::uint8_t { All, Look, LookWhileItRuns };
  /// The objects that `parts` names must outlive this. `guardian` lets the guest go when we die in
  /// a pause; without one that is done through the gdbstub, which the first pause opens.
  /// `numbers`: of the vCPUs that there are (see read_numbers()).
  MonitoredVcpus(std::vector<unsigned> numbers, Accelerator accelerator, Reach reach, Parts parts,
                 std::optional<Guardian> guardian)
      : numbers_(std::move(numbers)),
        count_(static_cast<unsigned>(numbers_.size())),
        accelerator_(accelerator),
        reach_(reach),
        parts_(parts),
        guardian_(std::move(guardian)),
        guarded_by_monitor_(guardian_.has_value()) {}

  /// The numbers that QEMU gives its vCPUs, in its order: those of their slots, of which some may
  /// be empty. `vcpus`: the answer to query-cpus-fast. Invalid when they are none, too many or not
  /// different ones.
  static Result<std::vector<unsigned>> read_numbers(const nlohmann::json& vcpus);
  /// Io, naming who has it, when QEMU's one gdbstub belongs to somebody.
  static Result<void> check_debugger_free(Monitor& monitor);
  /// Whether somebody is connected to the gdbstub that QEMU made for its owner: he would be told of
  /// a stop of ours.
  static Result<bool> has_foreign_debugger(Monitor& monitor);
  /// Whether nobody can use this character device any more: it is a descriptor whose other end is
  /// gone (a QEMU that ringside started and kept has one), or an earlier gdbserver has replaced it.
  static Result<bool> is_out_of_reach(Monitor& monitor, std::string_view label);
  /// Lets the guest go if we stopped it, and takes our gdbstub away. Idempotent.
  void let_go_for_good();

  unsigned count() const override { return count_.load(std::memory_order_acquire); }
  void set_stop_check(const StopCheck& check) override;
  bool look_while_they_run() override;

 private:
  Result<void> pause() override;
  Result<void> resume() override;
  Result<Registers> registers(unsigned vcpu) override;
  Result<void> write(std::span<const CodeWrite> writes) override;
  bool is_needed() const override { return accelerator_ != Accelerator::Kvm; }
  Result<void> find_plugged();
  Result<std::vector<unsigned>> ask_for_numbers();
  /// OurPause: the guest is let go if we die.
  enum class OpenedIn : std::uint8_t { OurPause, OwnersPause };
  Result<void> open_debugger(OpenedIn pause);
  Result<void> connect_debugger(OpenedIn pause);
  OpenedIn this_pause() const {
    return stopped_by_us_ ? OpenedIn::OurPause : OpenedIn::OwnersPause;
  }
  Result<void> check_pause();
  void note_own_stop();
  template <class T>
  Result<T> after_debugger(Result<T> answer);
  Result<Registers> printed_registers(unsigned vcpu);
  Result<void> write_directly(std::span<const CodeWrite> writes);
  Result<void> let_go();
  Result<void> let_go_by_debugger();
  void pause_is_over();

  // As QEMU numbers them. A vCPU's number elsewhere is its place here; those after one that is
  // unplugged move up.
  std::vector<unsigned> numbers_;
  std::atomic<unsigned> count_;
  const Accelerator accelerator_;
  Reach reach_;
  Parts parts_;
  std::optional<Guardian> guardian_;
  const bool guarded_by_monitor_;
  std::mutex mutex_;
  StopCheck stop_check_;
  std::optional<GdbRemote> gdb_;
  std::vector<Registers> printed_;  // in this pause; empty: not asked for yet
  unsigned pauses_ = 0;             // PausedMachines alive
  bool stopped_by_us_ = false, turned_away_ = false;
  bool is_stopping_ = false;  // a stop that QEMU tells of meanwhile is ours
};

}  // namespace ringside::vmm
