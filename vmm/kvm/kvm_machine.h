// The machine of our own VMM, on linux/kvm.h. Each vCPU has a thread, each virtio device another,
// the serial ports one. Made by start_kvm (vmm/kvm/start_kvm.h). Life: created and loaded -> vCPUs
// wait at the first instruction -> Vcpus::release() -> the guest runs -> it ends by itself, or
// shut_down().
// Threads: every function may be called from any thread. A vCPU that handles an exit counts as
// paused: it does not enter the guest again before the last PausedMachine is gone.
// Fire context: memory() yes, the rest no.
#pragma once

#include <unistd.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "vmm/guest_config.h"
#include "vmm/kvm/api/kvm_system.h"
#include "vmm/kvm/board.h"
#include "vmm/kvm/kvm_exits.h"
#include "vmm/kvm/kvm_guest.h"
#include "vmm/kvm/serial_peers.h"
#include "vmm/kvm/start_kvm.h"
#include "vmm/machine.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

class KvmMachine final : public Machine, private Vcpus, private CodeWriter, private MachineStatus {
 public:
  /// The errors are those of start_kvm().
  static Result<std::unique_ptr<KvmMachine>> create(const GuestConfig& guest,
                                                    const KvmConfig& config);
  ~KvmMachine() override { shut_down(); }

  // Machine
  std::string_view kind() const override { return "kvm"; }
  pid_t host_process() const override { return getpid(); }
  GuestMemory& memory() override { return guest_->memory(); }
  Vcpus& vcpus() override { return *this; }
  CodeWriter& code() override { return *this; }
  MachineStatus& status() override { return *this; }
  std::optional<GuestMemory::Extent> reserved_memory() const override;
  VcpuExits* exits() override { return &exits_; }
  void shut_down() override;

  MachineState state() const override;
  CommandPort command_port() const { return {peers_->control(), peers_->command_output()}; }

 private:
  KvmMachine(KvmSystem system, std::unique_ptr<KvmGuest> guest, std::unique_ptr<SerialPeers> peers,
             std::unique_ptr<Board> board)
      : system_(std::move(system)),
        guest_(std::move(guest)),
        peers_(std::move(peers)),
        board_(std::move(board)),
        exits_(system_, *guest_) {}
  Result<void> check_alive() const;

  // Vcpus
  unsigned count() const override { return guest_->vcpu_count(); }
  void release() override;
  Result<void> pause() override;
  Result<void> resume() override;
  Result<Registers> registers(unsigned vcpu) override;
  // CodeWriter
  Result<void> write(std::span<const CodeWrite> writes) override;
  // MachineStatus
  int event_fd() const override { return guest_->guest_end().event_fd(); }
  std::string console_tail() const override { return peers_->console_tail(); }
  std::string exit_reason() const override;
  std::string exit_report() const override;

  const KvmSystem system_;
  const std::unique_ptr<KvmGuest> guest_;
  const std::unique_ptr<SerialPeers> peers_;
  const std::unique_ptr<Board> board_;
  KvmExits exits_;
  std::mutex mutex_;
  bool held_ = true;
};

}  // namespace ringside::vmm::kvm
