// The shim's embedded image, ready to be written into a guest, its header, and the facts about the
// guest's kernel that the installer needs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/page_walk.h"
#include "vmm/shim/shim_layout.h"

namespace ringside::vmm {

/// How a shim finds the current task, and what it tells of that.
struct ShimTaskFacts {
  std::int32_t current = 0;  // per-cpu offset of the word that holds it, for %gs:
  // Offsets in struct task_struct.
  std::uint32_t comm = 0, pid = 0, tgid = 0, start_time = 0;
};

/// The facts about the kernel that the installer needs; vmm/linux finds them.
struct ShimKernelFacts {
  PageTable kernel_table;                          // init_top_pgt
  GuestVirt image_region_start, image_region_end;  // 0xffffffff80000000 and the modules' start
  GuestVirt image_end;                             // _end of the running kernel
  std::uint64_t this_cpu_off = 0;                  // per-cpu offset of this_cpu_off, for %gs:
  GuestVirt idt;                                   // symbol idt_table, which every CPU uses,
  GuestVirt idt_of_cpus;                           // at this address, in the user half too
  GuestVirt int3_handler;                          // symbol asm_exc_int3: what gate 3 must point to
  bool page_table_isolation = false;               // X86_FEATURE_PTI, from boot_cpu_data
  std::optional<ShimTaskFacts> task;               // empty: the shim tells nothing of tasks
  std::int32_t cpu_number = 0;                     // per-cpu offset of the CPU's number, for %gs:;
                                                   // 0: unknown, and no trap point records
};

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
