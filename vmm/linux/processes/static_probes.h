// The static probes of an ELF file of the guest: places that the program's author has marked with
// sys/sdt.h or dtrace(1) (USDT). Each is a nop in the text, and a note in the section
// .note.stapsdt, which no process maps. Where the guest's kernel has not all notes in memory, they
// are read from a copy of the file on the host (host_files.h). SystemTap's description of the
// format: "UserSpaceProbeImplementation": a note of the owner "stapsdt" and type 3, with three
// addresses (the nop, where .stapsdt.base was linked, the semaphore or 0) and three strings
// (provider, name, arguments). Hostile input: every byte is the file's; counts are bounded, and
// what contradicts itself is left out. Used by the provider of such probes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/linux/processes/file_bytes.h"
#include "vmm/linux/processes/file_elf.h"
#include "vmm/linux/processes/host_files.h"

namespace ringside::guest_linux {

struct StaticProbe {
  std::string provider, name;  // printable
  /// "8@%rdi -4@$5", as the compiler wrote them; but variables are named by their distance from the
  /// nop, as 64(%rip), where the file's symbols tell it.
  std::string arguments;
  std::uint64_t offset = 0;  // of the nop, in the file
  /// Of a counter of 2 bytes, in the file: the program skips the probe while it is 0. Even.
  std::optional<std::uint64_t> semaphore;
};

/// In the order of their notes. As many as have their notes in memory or on the host. `host`,
/// `path`, `servers`: as FileFunctions::read() has them.
std::vector<StaticProbe> read_static_probes(
    const FileBytes& file, const FileElf& elf, HostFiles* host = nullptr,
    std::string_view path = {}, HostFiles::Servers servers = HostFiles::Servers::NotAsked);

}  // namespace ringside::guest_linux
