// The machine: a guest, its board, its kernel. In this file: making it, what Machine asks.
#include "vmm/kvm/kvm_machine.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "vmm/kernel_file/kernel_choice.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/kvm/board.h"
#include "vmm/kvm/boot/acpi_tables.h"
#include "vmm/kvm/boot/boot.h"
#include "vmm/kvm/serial_peers.h"
#include "vmm/kvm/initrd_file.h"
#include "vmm/kvm/kvm_exits.h"
#include "vmm/kvm/kvm_guest.h"
#include "vmm/kvm/kvm_system.h"
#include "vmm/kvm/boot/layout.h"
#include "vmm/kvm/host/kvm_fitness.h"

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
Result<void> check_fitness(const MachineConfig& config, BootProtocol protocol) {
  if (!is_linux(protocol)) return {};
  const KvmFitness fitness = check_kvm(config.kvm_device.c_str());
  if (fitness.fit) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("KVM cannot be used: {}; try --machine qemu", fitness.reason));
}

}  // namespace

class KvmMachine::Impl {
 public:
  static Result<std::unique_ptr<Impl>> create(const MachineConfig& config);
  ~Impl() { shut_down(); }

  KvmGuest& guest() { return *guest_; }
  SerialPeers& peers() { return *peers_; }
  KvmExits& exits() { return exits_; }
  GuestFate& fate() { return guest_->fate(); }

  MachineState state();
  void release();
  void shut_down();
  Result<void> check_alive();

 private:
  Impl(KvmSystem system, std::unique_ptr<KvmGuest> guest, std::unique_ptr<SerialPeers> peers)
      : system_(std::move(system)),
        guest_(std::move(guest)),
        peers_(std::move(peers)),
        exits_(system_, *guest_) {}
  Result<BootState> load(const MachineConfig& config);

  KvmSystem system_;
  std::unique_ptr<KvmGuest> guest_;
  std::unique_ptr<SerialPeers> peers_;
  std::unique_ptr<Board> board_;
  KvmExits exits_;
  std::mutex mutex_;
  bool held_ = true;
};

Result<std::unique_ptr<KvmMachine::Impl>> KvmMachine::Impl::create(const MachineConfig& config) {
  KvmSystem system = TRY(KvmSystem::open(config.kvm_device));
  TRY(check_vcpus(system, config.vcpus));
  auto guest = TRY(KvmGuest::create(system, config.vcpus, config.memory));
  auto peers = TRY(SerialPeers::create(config.terminal));
  std::unique_ptr<Impl> impl(new Impl(std::move(system), std::move(guest), std::move(peers)));
  impl->board_ = TRY(Board::create(*impl->guest_, *impl->peers_, config));
  const BootState boot = TRY(impl->load(config));
  TRY(check_fitness(config, boot.protocol));
  const bool typed_to_hvc0 = reads_hvc0(kernel_command_line(config.append));
  TRY(impl->peers_->start(impl->board_->peer_ports(typed_to_hvc0)));
  TRY(impl->guest_->start(boot));
  if (!config.hold) impl->release();
  return impl;
}

Result<BootState> KvmMachine::Impl::load(const MachineConfig& config) {
  const KernelFile kernel =
      config.kernel_file ? *config.kernel_file : TRY(open_kernel(config.kernel, config.boot));
  const InitrdFile initrd = TRY(InitrdFile::open(config.initrd));
  BootRequest request;
  request.rsdp = TRY(write_acpi_tables(guest_->memory(), {config.vcpus, board_->virtio_count()}));
  request.initrd = initrd.bytes();
  request.command_line = kernel_command_line(config.append);
  request.ram_size = config.memory;
  return load_kernel(kernel, request, guest_->memory());
}

/// A kernel that panics resets the machine as a reboot does; only its console tells them apart.
MachineState KvmMachine::Impl::state() {
  const MachineState state = fate().state();
  if (state != MachineState::Rebooted) return state;
  const bool panic = peers_->console_tail().find("Kernel panic - not syncing") != std::string::npos;
  return panic ? MachineState::Panicked : state;
}

void KvmMachine::Impl::release() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(held_, false)) guest_->resume();
}

void KvmMachine::Impl::shut_down() {
  fate().end(MachineState::Died, {});  // for a guest that has not ended by itself
  guest_->stop();
  peers_->stop();
}

Result<void> KvmMachine::Impl::check_alive() {
  if (fate().state() == MachineState::Running) return {};
  return fail(ErrorCode::MachineGone, "the guest has ended");
}

KvmMachine::KvmMachine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

KvmMachine::~KvmMachine() = default;

Result<std::unique_ptr<KvmMachine>> KvmMachine::create(const MachineConfig& config) {
  auto impl = TRY(Impl::create(config));
  return std::unique_ptr<KvmMachine>(new KvmMachine(std::move(impl)));
}

unsigned KvmMachine::vcpu_count() const {
  return impl_->guest().vcpu_count();
}

GuestMemory& KvmMachine::memory() {
  return impl_->guest().memory();
}

std::optional<GuestMemory::Extent> KvmMachine::reserved_memory() const {
  return shim_memory(impl_->guest().memory().size());
}

MachineState KvmMachine::state() {
  return impl_->state();
}

int KvmMachine::state_event_fd() const {
  return impl_->fate().event_fd();
}

std::string KvmMachine::console_tail() const {
  return impl_->peers().console_tail();
}

std::string KvmMachine::cause_of_death() const {
  const std::string words = last_words();
  return words.substr(0, words.find('\n'));
}

std::string KvmMachine::last_words() const {
  const MachineState state = impl_->state();
  const bool bad = state == MachineState::Died || state == MachineState::Panicked;
  return bad ? impl_->fate().last_words() : std::string();
}

std::optional<Machine::CommandPort> KvmMachine::command_port() {
  return CommandPort{impl_->peers().control(), impl_->peers().command_output()};
}

VcpuExits* KvmMachine::exits() {
  return &impl_->exits();
}

void KvmMachine::release() {
  impl_->release();
}

void KvmMachine::shut_down() {
  impl_->shut_down();
}

Result<void> KvmMachine::pause_vcpus() {
  TRY(impl_->check_alive());
  impl_->guest().pause();
  return {};
}

Result<void> KvmMachine::resume_vcpus() {
  impl_->guest().resume();
  return impl_->check_alive();
}

Result<Registers> KvmMachine::read_registers(unsigned vcpu) {
  TRY(impl_->check_alive());
  return impl_->guest().registers(vcpu);
}

Result<void> KvmMachine::write_code_bytes(std::span<const CodeWrite> writes) {
  TRY(impl_->check_alive());
  for (const CodeWrite& write : writes) {
    const auto where = impl_->guest().locate(write.at);
    const auto byte = std::byte{write.byte};
    if (!where || !memory().write(*where, std::span(&byte, 1))) {
      return fail(ErrorCode::Invalid,
                  fmt::format("there is no code to write at {:#x}", write.at.raw()));
    }
  }
  return {};
}

}  // namespace ringside::vmm::kvm
