// The RAM in a saved QEMU: a migration stream (`migrate "exec:cat>file"`) or libvirt's save image
// (`virsh save`), which is such a stream behind a header and the domain's XML.
// Layouts: QEMU's docs/devel/migration and migration/{savevm,ram}.c, versions 2.x to 10, of
// sections
//   "QEVM", version 3, a configuration section, then sections: a type, an id, for the first of each
//   kind its name; a footer with the id. Numbers are big-endian.
//   section "ram", version 4: the blocks with their names and sizes; then pages, each with its
//   address in a block and flags in the low bits: all of one byte, 4096 bytes, or differences to
//   what it was before (XBZRLE)
// libvirt's src/qemu/qemu_saveimage.h: magic, then native words: version, bytes of XML and cookie
// that follow, was running, compression, place of the cookie, 14 unused.
// The states of devices follow RAM without lengths, so they are not read, and nothing is known of
// the vCPUs. The stream does not tell where RAM lies in guest-physical memory; the kernel in it
// does (SavedMachine::possible_splits()).
// Used by SavedMachine. The file is a user's and may be anything: every length is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

struct StreamedRam {
  UniqueFd file;  // RAM as one piece, without a name; what is zero is a hole
  std::uint64_t size = 0;
};

/// Whether a file that begins so is one of these.
bool is_migration_stream(std::span<const std::byte> start);

/// Copies RAM out of the stream in `fd`, of `size` bytes, into a file of its own in TMPDIR or
/// /var/tmp. Unsupported, with what to do instead, for a stream in a form that is not read; Invalid
/// for one that is damaged or ends too early; Io when there is no room.
Result<StreamedRam> read_migration_stream(int fd, std::uint64_t size);

}  // namespace ringside::vmm
