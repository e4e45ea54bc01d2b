// The machine: a guest, its board, its kernel. In this file: making it, Machine's functions.
#include "vmm/kvm/kvm_machine.h"

#include <fmt/format.h>

#include <utility>

#include "vmm/kernel_file/kernel_file.h"
#include "vmm/kvm/boot/acpi_tables.h"
#include "vmm/kvm/boot/boot.h"
#include "vmm/kvm/boot/layout.h"
#include "vmm/kvm/host/kvm_fitness.h"
#include "vmm/kvm/initrd.h"

namespace ringside::vmm::kvm {
namespace {

/// panic=-1: reboot at once, which ends the machine. Nothing else is needed: no_timer_check is for
/// timers that a translator emulates, and e820 keeps the guest off the shim's memory.
std::string kernel_command_line(const std::string& append) {
  std::string line = "console=ttyS0 panic=-1 quiet";
  if (!append.empty()) line += " " + append;
  return line;
}

/// Linux's main console, the one that is read from, is the last that the line names
/// (Documentation/admin-guide/serial-console.rst).
bool reads_hvc0(const std::string& command_line) {
  const std::size_t last = (" " + command_line).rfind(" console=");
  return last != std::string::npos && command_line.compare(last, 12, "console=hvc0") == 0;
}

Result<void> check_vcpus(const KvmSystem& system, unsigned vcpus) {
  // From APIC id 255 on a guest wants interrupt remapping, which the board has not.
  const unsigned most = std::min(system.most_vcpus(), 255u);
  if (vcpus == 0) return fail(ErrorCode::Usage, "a guest needs a CPU or more");
  if (vcpus <= most) return {};
  return fail(
      ErrorCode::Limit,
      fmt::format("a guest with {} CPUs is too large: this host's KVM takes {}", vcpus, most));
}

bool is_linux(BootProtocol protocol) {
  return protocol == BootProtocol::BzImage || protocol == BootProtocol::Pvh;
}

/// A KVM that emulates kernel mode runs a test kernel of some thousand instructions, never Linux.
Result<void> check_fitness(const KvmConfig& config, BootProtocol protocol) {
  if (!is_linux(protocol)) return {};
  const KvmFitness fitness = check_kvm(config.device.c_str());
  if (fitness.fit) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("KVM cannot be used: {}; try --machine qemu", fitness.reason));
}

/// Puts the kernel, its initrd and the ACPI tables of a board with that many virtio devices into
/// `memory`. Returns the state in which vCPU 0 starts.
Result<BootState> load(const GuestConfig& guest, const KvmConfig& config, unsigned virtio_count,
                       GuestMemory& memory) {
  const KernelFile kernel =
      config.kernel_file ? *config.kernel_file : TRY(open_kernel(guest.kernel, config.boot));
  const InitrdFile initrd = TRY(InitrdFile::open(guest.initrd));
  BootRequest request;
  request.rsdp = TRY(write_acpi_tables(memory, {guest.vcpus, virtio_count}));
  request.initrd = initrd.bytes();
  request.command_line = kernel_command_line(guest.append);
  request.ram_size = guest.memory;
  return load_kernel(kernel, request, memory);
}

}  // namespace

Result<std::unique_ptr<KvmMachine>> KvmMachine::create(const GuestConfig& guest,
                                                       const KvmConfig& config) {
  KvmSystem system = TRY(KvmSystem::open(config.device));
  TRY(check_vcpus(system, guest.vcpus));
  auto made = TRY(KvmGuest::create(system, guest.vcpus, guest.memory));
  auto peers = TRY(SerialPeers::create(config.terminal));
  auto board = TRY(Board::create(*made, *peers, config));
  const BootState boot = TRY(load(guest, config, board->virtio_count(), made->memory()));
  TRY(check_fitness(config, boot.protocol));
  std::unique_ptr<KvmMachine> machine(
      new KvmMachine(std::move(system), std::move(made), std::move(peers), std::move(board)));
  const bool typed_to_hvc0 = reads_hvc0(kernel_command_line(guest.append));
  TRY(machine->peers_->start(machine->board_->peer_ports(typed_to_hvc0)));
  TRY(machine->guest_->start(boot));
  if (!config.hold) machine->release();
  return machine;
}

/// A kernel that panics resets the machine as a reboot does; only its console tells them apart.
MachineState KvmMachine::state() const {
  const MachineState state = guest_->guest_end().state();
  if (state != MachineState::Rebooted) return state;
  const bool panic = peers_->console_tail().find("Kernel panic - not syncing") != std::string::npos;
  return panic ? MachineState::Panicked : state;
}

std::string KvmMachine::exit_reason() const {
  const std::string words = exit_report();
  return words.substr(0, words.find('\n'));
}

std::string KvmMachine::exit_report() const {
  const MachineState now = state();
  const bool bad = now == MachineState::Died || now == MachineState::Panicked;
  return bad ? guest_->guest_end().exit_report() : std::string();
}

void KvmMachine::release() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(held_, false)) guest_->resume();
}

void KvmMachine::shut_down() {
  guest_->guest_end().record(MachineState::Died, {});  // for a guest that has not ended by itself
  guest_->stop();
  peers_->stop();
}

Result<void> KvmMachine::check_alive() const {
  if (guest_->guest_end().state() == MachineState::Running) return {};
  return fail(ErrorCode::MachineGone, "the guest has ended");
}

Result<void> KvmMachine::pause() {
  TRY(check_alive());
  guest_->pause();
  return {};
}

Result<void> KvmMachine::resume() {
  guest_->resume();
  return check_alive();
}

Result<Registers> KvmMachine::registers(unsigned vcpu) {
  TRY(check_alive());
  return guest_->registers(vcpu);
}

Result<void> KvmMachine::write(std::span<const CodeWrite> writes) {
  TRY(check_alive());
  const auto lost = write_through(guest_->memory(), writes);
  if (!lost) return {};
  return fail(ErrorCode::Invalid,
              fmt::format("there is no code to write at {:#x}: no memory is there", lost->raw()));
}

std::optional<GuestMemory::Extent> KvmMachine::reserved_memory() const {
  return shim_memory(guest_->memory().size());
}

}  // namespace ringside::vmm::kvm
