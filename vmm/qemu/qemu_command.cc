// QEMU's command line, option by option with its reason.
#include "vmm/qemu/qemu_command.h"

#include <fmt/format.h>

#include <utility>

namespace ringside::vmm {
namespace {

/// panic=-1: reboot at once, which -no-reboot turns into the end of QEMU. no_timer_check: on a
/// loaded host the timer test of a translated kernel fails and panics.
std::string kernel_command_line(const std::string& append, bool as_is) {
  std::string line = "console=ttyS0 panic=-1 quiet no_timer_check";
  if (!as_is) {
    line +=
        fmt::format(" memmap={}M${:#x}", kReservedMemory.size >> 20, kReservedMemory.base.raw());
  }
  if (!append.empty()) line += " " + append;
  return line;
}

/// Without cmpxchg16b under TCG: QEMU 7.2 leaves rubbish in the flags after it, which an interrupt
/// right there saves and restores. Linux 6.12 on two busy CPUs then copies backwards in
/// prepare_creds (the direction flag is set) or takes a double fault: 5 of 21 boots lost, none of
/// 373 without, none of 6 on QEMU 10.0.
const char* cpu_model(Accelerator accelerator) {
  return accelerator == Accelerator::Kvm ? "max" : "max,-cx16";
}

}  // namespace

std::vector<RamPiece> pc_ram(std::uint64_t size) {
  constexpr std::uint64_t kSplitFrom = 0xe000'0000, kLow = 0xc000'0000, kHigh = 0x1'0000'0000;
  if (size < kSplitFrom) return {{GuestPhys(0), 0, size}};
  return {{GuestPhys(0), 0, kLow}, {GuestPhys(kHigh), kLow, size - kLow}};
}

std::vector<std::string> qemu_arguments(const GuestConfig& guest, const QemuConfig& config,
                                        Accelerator accelerator, const QemuDescriptors& fds) {
  std::vector<std::string> arguments{
      config.program, "-accel", accelerator == Accelerator::Kvm ? "kvm" : "tcg,thread=multi",
      "-cpu", cpu_model(accelerator), "-smp", fmt::format("{}", guest.vcpus), "-m",
      fmt::format("{}M", guest.memory >> 20), "-nodefaults", "-no-user-config", "-display", "none",
      "-no-reboot", "-S",
      // Devices are what a guest breaks out through. A QEMU without seccomp refuses this, in its
      // own words, and we go no further.
      "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
      // Shared, so that we see the guest's memory; by descriptor, so that no file has a name.
      "-object",
      fmt::format("memory-backend-file,id=ram,size={},mem-path=/proc/self/fd/{},share=on",
                  guest.memory, fds.ram),
      "-machine", "pc,memory-backend=ram"};
  // Not "gdb": the monitor's own gdbserver command wants that name, in a machine that was kept.
  const std::pair<const char*, int> channels[] = {{"monitor", fds.monitor},
                                                  {"debugger", fds.gdb},
                                                  {"console", fds.console},
                                                  {"control", fds.control},
                                                  {"output", fds.output}};
  for (const auto& [name, fd] : channels) {
    arguments.insert(arguments.end(), {"-chardev", fmt::format("socket,id={},fd={}", name, fd)});
  }
  arguments.insert(arguments.end(),
                   {"-mon", "chardev=monitor,mode=control", "-gdb", "chardev:debugger", "-serial",
                    "chardev:console", "-serial", "chardev:control", "-serial", "chardev:output"});
  arguments.insert(arguments.end(), {"-kernel", guest.kernel});
  if (!guest.initrd.empty()) arguments.insert(arguments.end(), {"-initrd", guest.initrd});
  arguments.insert(arguments.end(), {"-append", kernel_command_line(guest.append, config.as_is)});
  return arguments;
}

}  // namespace ringside::vmm
