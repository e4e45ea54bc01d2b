// Lists the virtual machines of this host that we may see, whoever started them: what each one is,
// and whether we can attach to it. The list changes nothing and stops no thread. Only libvirt or
// the monitor of a QEMU that translates can tell whether its guest runs: this asks libvirt, or the
// socket if nobody is connected to it. Used by the command (ringside vms).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::vmm {

struct HostVm {
  std::string name;  // as attach() would call it
  pid_t pid = 0;
  std::string vmm;                      // the program: "qemu", "firecracker"...
  std::string accelerator;              // "kvm", or "tcg" where QEMU translates
  std::string state;                    // "running", "paused"..., "stopped" by a signal; "unknown"
  std::optional<unsigned> vcpus;        // empty: nobody tells
  std::optional<std::uint64_t> memory;  // bytes, the same
  std::string kernel;                   // its release, from the guest's memory; empty: none seen
  std::string ours;                     // what is in it: "traced by process N"; empty: nothing
  std::string target;                   // what --attach takes; empty: cannot be attached to
  std::string obstacle;                 // then why, one line
};

/// The state of a domain, by its name or UUID, that libvirt's default connection knows.
using FindDomain = std::function<Result<std::string>(const std::string& domain)>;
Result<std::string> find_domain(const std::string& domain);

/// In order of their processes' numbers. `proc` and `find` are others in tests.
std::vector<HostVm> list_host_vms(const std::string& proc = "/proc",
                                  const FindDomain& find = find_domain);

}  // namespace ringside::vmm
