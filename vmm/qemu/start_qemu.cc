// Starting QEMU: checks with one-line messages, the choice of KVM or TCG, the descriptors, the
// process.
#include "vmm/qemu/start_qemu.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "vmm/guest_config.h"
#include "vmm/kvm/host/kvm_fitness.h"
#include "vmm/qemu/child_process.h"
#include "vmm/qemu/guardian.h"
#include "vmm/qemu/qemu_command.h"
#include "vmm/qemu/qemu_machine.h"
#include "vmm/shared_ram.h"

namespace ringside::vmm {
namespace {

/// The shim's region lies below 112 MiB, and a Debian initramfs wants the rest.
constexpr std::uint64_t kSmallestRam = 256 << 20;

Result<void> check_readable(GuestFile which, const std::string& path) {
  struct stat info;
  errno = 0;
  const bool regular = stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
  if (regular && access(path.c_str(), R_OK) == 0) return {};
  if (errno == 0) errno = EISDIR;
  return Unexpected<Error>(unreadable(which, path, errno));
}

Result<void> check_guest(const GuestConfig& config) {
  if (config.vcpus == 0) return fail(ErrorCode::Usage, "a guest needs a CPU or more");
  TRY(check_ram_size(config.memory, host_memory(), kSmallestRam));
  TRY(check_readable(GuestFile::Kernel, config.kernel));
  if (!config.initrd.empty()) TRY(check_readable(GuestFile::Initrd, config.initrd));
  return {};
}

struct Choice {
  Accelerator accelerator;
  std::string news;
};

Result<Choice> choose(AcceleratorChoice wanted) {
  if (wanted == AcceleratorChoice::Tcg) return Choice{Accelerator::Tcg, "starting QEMU with TCG"};
  const KvmFitness kvm = check_kvm();
  if (kvm.fit) return Choice{Accelerator::Kvm, "starting QEMU with KVM"};
  if (wanted == AcceleratorChoice::Kvm) {
    return fail(ErrorCode::Unsupported,
                fmt::format("KVM cannot be used: {}; try --machine qemu", kvm.reason));
  }
  return Choice{Accelerator::Tcg, fmt::format("starting QEMU with TCG, not KVM: {}", kvm.reason)};
}

/// A socket pair: QEMU's end, to be inherited, and ours.
Result<UniqueFd> connect(UniqueFd& ours) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  ours = UniqueFd(ends[0]);
  return UniqueFd(ends[1]);
}

struct Started {
  ChildProcess child;
  QemuMachine::Links links;
  UniqueFd control, output;  // of the command port
};

/// QEMU's ends are closed here on return: a QEMU that ends must be seen as end of file.
Result<Started> start(const GuestConfig& guest, const QemuConfig& config,
                      const std::string& program, Accelerator accelerator, const SharedRam& ram) {
  QemuMachine::Links links;
  links.as_is = config.as_is;
  UniqueFd our_control, our_output;
  const UniqueFd monitor = TRY(connect(links.monitor)), gdb = TRY(connect(links.gdb)),
                 console = TRY(connect(links.console)), control = TRY(connect(our_control)),
                 output = TRY(connect(our_output));
  const QemuDescriptors fds{ram.fd(),      monitor.get(), gdb.get(),
                            console.get(), control.get(), output.get()};
  // Before QEMU, so that no moment is without it. Ours alone: QEMU does not inherit its end.
  if (config.keep) links.guardian.emplace(TRY(Guardian::start(links.gdb.get())));
  const int inherited[] = {fds.ram, fds.monitor, fds.gdb, fds.console, fds.control, fds.output};
  ChildProcess child =
      TRY(ChildProcess::spawn(program, qemu_arguments(guest, config, accelerator, fds), inherited,
                              config.keep ? ChildLife::OutlivesParent : ChildLife::EndsWithParent));
  return Started{std::move(child), std::move(links), std::move(our_control), std::move(our_output)};
}

}  // namespace

Result<StartedGuest> start_qemu(const GuestConfig& guest, const QemuConfig& config) {
  TRY(check_guest(guest));
  const auto program = find_program(config.program);
  if (!program) {
    return fail(
        ErrorCode::NotFound,
        fmt::format("no program {}: apt-get install qemu-system-x86, or name a QEMU with --qemu",
                    config.program));
  }
  const auto tell = [&](const std::string& line) {
    if (guest.progress) guest.progress(line);
  };
  const Choice choice = TRY(choose(config.accelerator));
  tell(choice.news);

  SharedRam ram = TRY(SharedRam::create(guest.memory));
  Started started = TRY(start(guest, config, *program, choice.accelerator, ram));
  if (config.keep)
    tell(fmt::format("the guest will stay: QEMU is process {}", started.child.pid()));
  auto machine = TRY(QemuMachine::take_over(guest.vcpus, choice.accelerator, std::move(ram),
                                            std::move(started.child), std::move(started.links)));
  const CommandPort port{started.control.get(), started.output.get()};
  machine->keep_open(std::move(started.control));
  machine->keep_open(std::move(started.output));
  return StartedGuest{std::move(machine), port};
}

}  // namespace ringside::vmm
