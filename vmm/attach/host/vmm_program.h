// Recognises a virtual machine monitor by its program and command line, and reads what these tell
// of its guest: for lists and messages. The owner of the process chose these words; other code
// checks whether they are true.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vmm/attach/host/host_process.h"

namespace ringside::vmm {

enum class VmmKind : std::uint8_t { Qemu, Other };

struct VmmProgram {
  VmmKind kind = VmmKind::Other;
  std::string title;                    // "qemu", "firecracker"...
  std::string name;                     // what the owner calls the guest, else TITLE-PID
  std::string processor;                // of the guest, as a QEMU's own name has it; empty: unknown
  std::string domain, domain_uuid;      // what libvirt calls it, where libvirt started it
  std::string qmp_path;                 // of a monitor's socket that QEMU listens on; empty: none
  std::optional<unsigned> vcpus;        // as QEMU was told
  std::optional<std::uint64_t> memory;  // bytes, the same
};

/// An owner's name for a machine, as it stands in probe descriptions: with _ for what would mean
/// something there, and not too long.
std::string fit_machine_name(std::string name);

/// Pure.
VmmProgram describe_program(const std::string& program,
                            const std::vector<std::string>& command_line, pid_t pid);
VmmProgram describe_program(const HostProcess& process);

/// Unsupported when the guest's processor is another than ours.
Result<void> check_guest_processor(const HostProcess& process, const VmmProgram& program);
/// Unsupported when a QEMU's guest has memory that is not there yet, or is just being saved:
/// whoever touches it waits for another host, or for storage. Another VMM that loads a snapshot by
/// need goes on so all the time.
Result<void> check_memory_is_here(const HostProcess& process, const VmmProgram& program,
                                  const std::vector<HostProcess::Descriptor>& descriptors);
/// For a process that runs no virtual machine.
Error runs_no_guest(const HostProcess& process);

}  // namespace ringside::vmm
