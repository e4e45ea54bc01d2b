// The shim's embedded image, ready to be written into a guest, and its header.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/result.h"
#include "vmm/shim/shim.h"
#include "vmm/shim/shim_layout.h"

namespace ringside::vmm {

/// Its header as it was built. Invalid when it is none that this program speaks with.
Result<shim_header> read_image();

/// The header with all that the host fills in, but for the owner.
shim_header complete(shim_header header, const ShimKernelFacts& facts, GuestVirt home,
                     const ShimLayout& layout);

/// The code with this header.
std::vector<std::byte> image_with(const shim_header& header);

/// True when the handler lies in a region that carries the shim's magic.
bool is_shim_at(const GuestMemory& memory, const PageTable& table, GuestVirt handler);

/// A process of this host, told from later ones with its number.
struct ProcessName {
  std::uint64_t pid = 0, start = 0;

  static ProcessName of_self();
  /// The process that has this id now; `start` is 0 if there is none.
  static ProcessName of(pid_t pid);
  /// Whether it lives; of one that cannot be looked at, no.
  bool is_alive() const;
  /// Both in one word, as shim_header::machine has it; 0 when there is none.
  std::uint64_t word() const;
};

}  // namespace ringside::vmm
