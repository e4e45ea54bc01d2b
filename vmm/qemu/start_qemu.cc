// From what the user asked for to a running QEMU: checks with one-line messages, KVM or TCG, the
// descriptors, the process.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "vmm/guest_file.h"
#include "vmm/kvm/host/kvm_fitness.h"
#include "vmm/machine.h"
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

Result<void> check_config(const MachineConfig& config) {
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

Result<Choice> choose(MachineChoice wanted) {
  if (wanted == MachineChoice::Qemu) return Choice{Accelerator::Tcg, "starting QEMU with TCG"};
  const KvmFitness kvm = check_kvm();
  if (kvm.fit) return Choice{Accelerator::Kvm, "starting QEMU with KVM"};
  if (wanted == MachineChoice::QemuKvm) {
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
};

/// QEMU's ends are closed here on return: a QEMU that ends must be seen as end of file.
Result<Started> start(const MachineConfig& config, const std::string& program,
                      Accelerator accelerator, const SharedRam& ram) {
  QemuMachine::Links links;
  const UniqueFd monitor = TRY(connect(links.monitor)), gdb = TRY(connect(links.gdb)),
                 console = TRY(connect(links.console)), control = TRY(connect(links.control)),
                 output = TRY(connect(links.output));
  const QemuDescriptors fds{ram.fd(),      monitor.get(), gdb.get(),
                            console.get(), control.get(), output.get()};
  // Before QEMU, so that no moment is without it. Ours alone: QEMU does not inherit its end.
  if (config.keep) links.guardian.emplace(TRY(Guardian::start(links.gdb.get())));
  const int inherited[] = {fds.ram, fds.monitor, fds.gdb, fds.console, fds.control, fds.output};
  ChildProcess child =
      TRY(ChildProcess::spawn(program, qemu_arguments(config, accelerator, fds), inherited,
                              config.keep ? ChildLife::OutlivesParent : ChildLife::EndsWithParent));
  return Started{std::move(child), std::move(links)};
}

}  // namespace

Result<std::unique_ptr<Machine>> start_qemu(const MachineConfig& config) {
  TRY(check_config(config));
  const auto program = find_program(config.qemu);
  if (!program) {
    return fail(
        ErrorCode::NotFound,
        fmt::format("no program {}: apt-get install qemu-system-x86, or name a QEMU with --qemu",
                    config.qemu));
  }
  const auto tell = [&](const std::string& line) {
    if (config.progress) config.progress(line);
  };
  const Choice choice = TRY(choose(config.choice));
  tell(choice.news);

  SharedRam ram = TRY(SharedRam::create(config.memory));
  Started started = TRY(start(config, *program, choice.accelerator, ram));
  if (config.keep)
    tell(fmt::format("the guest will stay: QEMU is process {}", started.child.pid()));
  return QemuMachine::take_over(config, choice.accelerator, std::move(ram),
                                std::move(started.child), std::move(started.links));
}

}  // namespace ringside::vmm
