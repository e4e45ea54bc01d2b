// The virtual machines of this host, whoever started them, as far as we may see them: what each one
// is, and whether it can be attached to. Looking changes nothing: no thread is stopped. Whether a
// QEMU that translates runs its guest only libvirt or its monitor can tell: libvirt is asked, or
// the socket when nobody is connected to it. Used by the command (ringside vms).
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
