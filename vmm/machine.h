// A machine: a virtual machine that we can see into and whose code we can change.
// Back ends: vmm/qemu/ (QEMU that we start), vmm/kvm/ (our own VMM). "No guest" is a null pointer
// at higher levels. "How to add a back end": implement Machine and a function beside start_qemu;
// nothing above vmm may know which one it is. Threads: every function may be called from any
// thread. Pauses nest, in one thread or several: the guest runs again when the last PausedMachine
// is gone. Fire context: memory() yes; everything else no.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/arch/x86_64/registers.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm {

/// New bytes for kernel text that is executed now: at most a few bytes each.
struct CodeWrite {
  GuestVirt at;
  std::uint8_t byte = 0;
};

enum class MachineState : std::uint8_t {
  Running,
  PoweredOff,  // the guest ended by its own wish
  Rebooted,    // the guest reset itself
  Panicked,    // the guest's kernel panicked
  Died,        // the process behind the machine is gone
};

class KernelFile;
class PausedMachine;
class VcpuExits;

class Machine {
 public:
  virtual ~Machine() = default;

  virtual std::string_view kind() const = 0;  // "qemu (TCG)", "qemu (KVM)"
  virtual unsigned vcpu_count() const = 0;
  virtual GuestMemory& memory() = 0;
  /// Where start-up reserved RAM that the guest leaves alone, for the shim; empty when nowhere.
  virtual std::optional<GuestMemory::Extent> reserved_memory() const = 0;
  /// What became of the guest so far; does not block. Leaving Running is for ever.
  virtual MachineState state() = 0;
  /// Readable when state() may have changed; -1 when the machine has no such event.
  virtual int state_event_fd() const = 0;
  /// The last lines of the guest's console, for messages.
  virtual std::string console_tail() const = 0;
  /// How the process behind a machine that Died ended, and its own last line; empty otherwise, or
  /// where there is no such process.
  virtual std::string cause_of_death() const { return {}; }
  /// More than one line of the same where there is more: the state of the vCPU that died.
  virtual std::string last_words() const { return {}; }

  /// The two byte streams to the guest's command port (images/README.md); empty when the machine
  /// has none. Both ends stay owned by the machine; they are blocking, so poll before reading.
  /// Output that nobody reads stops the process in the guest that writes it, nothing else.
  struct CommandPort {
    int control = -1;  // requests and answers, one line each
    int output = -1;   // the command's stdout and stderr
  };
  virtual std::optional<CommandPort> command_port() = 0;

  /// What a machine whose vCPUs run in this process offers (vmm/vcpu_exits.h); null elsewhere.
  virtual VcpuExits* exits() { return nullptr; }
  /// Lets the vCPUs begin, in a machine that was made with MachineConfig::hold; else nothing.
  virtual void release() {}

  /// Ends the guest and everything that was started for it (with MachineConfig::keep: lets it run
  /// and turns away). Idempotent; a pause under way in another thread fails.
  virtual void shut_down() = 0;

 protected:
  friend class PausedMachine;
  virtual Result<void> pause_vcpus() = 0;
  virtual Result<void> resume_vcpus() = 0;
  virtual Result<Registers> read_registers(unsigned vcpu) = 0;
  virtual Result<void> write_code_bytes(std::span<const CodeWrite> writes) = 0;
};

/// While one lives, no vCPU of the machine executes guest code. Functions that change guest text
/// or page tables, or that read registers, take one, so the compiler checks that rule.
class PausedMachine {
 public:
  static Result<PausedMachine> pause(Machine& machine);
  PausedMachine(PausedMachine&& other) noexcept
      : machine_(std::exchange(other.machine_, nullptr)) {}
  PausedMachine& operator=(PausedMachine&&) = delete;
  /// Resumes; a failure to do so is visible as Machine::state() afterwards.
  ~PausedMachine();

  GuestMemory& memory() { return machine_->memory(); }
  Result<Registers> registers(unsigned vcpu) { return machine_->read_registers(vcpu); }
  unsigned vcpu_count() const { return machine_->vcpu_count(); }
  /// Writes text that may have run before (under TCG the translator must be told).
  Result<void> write_code(std::span<const CodeWrite> writes) {
    return machine_->write_code_bytes(writes);
  }

 private:
  explicit PausedMachine(Machine* machine) : machine_(machine) {}
  Machine* machine_;
};

enum class MachineChoice : std::uint8_t {
  Auto,     // QEMU with KVM where it is fit, else with TCG
  QemuKvm,  // QEMU with KVM, or an error that says why not
  Qemu,     // QEMU with its own translator (TCG)
  Kvm,      // our own VMM, or an error that says why not
};

/// How the kvm machine starts a kernel file.
enum class BootWay : std::uint8_t {
  // By a PVH note where there is one, also that of the vmlinux in a bzImage; else as it is.
  Auto,
  Pvh,      // by its PVH note, or an error
  BzImage,  // by Linux's 64-bit boot protocol, or an error: the kernel unpacks and moves itself
};

/// A raw file as a virtio block device.
struct DiskConfig {
  std::string path;
  bool read_only = false;
};

struct MachineConfig {
  MachineChoice choice = MachineChoice::Auto;
  std::string kernel, initrd;  // paths; initrd may be empty
  std::string append;          // added to our own kernel command line
  unsigned vcpus = 1;
  std::uint64_t memory = 512 << 20;                // bytes
  bool keep = false;                               // the guest outlives us, even a SIGKILL
  std::string qemu = "qemu-system-x86_64";         // the binary, by name or path
  std::function<void(std::string_view)> progress;  // one line of news for the user

  // The kvm machine only.
  std::vector<DiskConfig> disks;
  BootWay boot = BootWay::Auto;
  /// `kernel` as open_kernel() has read it, where somebody needed it before.
  std::shared_ptr<const KernelFile> kernel_file;
  bool hold = false;  // the vCPUs wait for Machine::release()
  /// One line of what goes wrong in a guest that goes on; called on any thread.
  std::function<void(std::string_view)> warn;
  bool terminal = false;  // stdin goes to the guest's console, which goes to stderr
  std::string kvm_device = "/dev/kvm";
};

/// Starts QEMU with KVM where the host's KVM can run a stock kernel, else with TCG, and says which
/// through `progress`. Returns once QEMU runs; the guest has only just begun to boot.
/// Call it on the main thread: without `keep` the kernel kills QEMU when the thread that started it
/// ends, whatever ends it. With `keep` QEMU stays, even if we are killed, and so that the guest
/// runs on then, a small process of ours stays beside it until we end; have one thread when you
/// call.
Result<std::unique_ptr<Machine>> start_qemu(const MachineConfig& config);

/// Boots `kernel` (bzImage, vmlinux, Multiboot or plain ELF) on our own VMM under KVM. One line
/// that says what to do where KVM is absent, not permitted, lacks a capability (by name), or cannot
/// run kernel code here, and for bad kernels, initrds and disks.
Result<std::unique_ptr<Machine>> start_kvm(const MachineConfig& config);

}  // namespace ringside::vmm
