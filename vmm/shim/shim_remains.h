// Finds, checks and takes out the shim that a dead tracer left in a guest. It is found by the
// guest's gate for breakpoints, by the page tables beside the kernel's image, and by its header in
// the first megabyte. Nothing is trusted: every word of the header except its owner must be the one
// that this program would write there. The same holds for the code and for the entries of the page
// tables. Only the guest's kernel can tell whether the memory may be cleared
// (vmm/linux/low_memory.h); providers know what to restore in its text. A shim that had to stay,
// because a task sleeps in a slot, serves the next tracer (take_over). Used to take over a guest.
// Does not: know instructions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/machine.h"
#include "vmm/shim/shim.h"
#include "vmm/shim/shim_image.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_mapping.h"

namespace ringside::vmm {

class ShimRemains {
 public:
  /// Looks, and writes nothing; also in `set_aside`, where the machine has such. Empty when there
  /// is none. Unsupported, with what to do, where it is of another version or not whole.
  static Result<std::optional<ShimRemains>> find(const GuestMemory& memory,
                                                 const ShimKernelFacts& facts,
                                                 std::optional<GuestMemory::Extent> set_aside = {});

  /// All the guest's memory that it takes.
  GuestMemory::Extent extent() const { return {layout_.place, layout_.taken()}; }
  ShimPlace place() const { return layout_.place_at(home_); }
  /// The address that the records of its jumps call.
  GuestVirt jump_entry() const { return home_.wrapping_add(SHIM_JUMP_ENTRY); }
  /// The process that put it there.
  const ProcessName& owner() const { return owner_; }
  /// Whether its tracer lives and traces this machine, which `process` runs; not one that its guest
  /// was moved away from.
  bool is_in_use_by(pid_t process) const;
  /// Whether its tracer has ended well, and somebody may be inside: no breakpoint is left, and the
  /// gate is the kernel's.
  bool is_retired() const { return owner_.pid == 0 && !gate_ && !out_of_reach_; }
  /// Whether nothing of this kernel leads to it: its tracer died while it came or went, or the
  /// guest has started another kernel since. Nobody is inside, and no breakpoint of it stands.
  bool is_out_of_reach() const { return out_of_reach_; }
  /// Counts up while its tracer lives.
  std::uint64_t heartbeat(const GuestMemory& memory) const;

  struct Entry {
    GuestVirt address;
    std::optional<GuestVirt> slot;  // none: it is disabled, and only a jump there is of that shim
  };
  /// The entries of its table, of this kernel's region: copied, and inside of its parts.
  std::vector<Entry> entries(const GuestMemory& memory) const;
  /// Reads from `slot` on, as much as there is, up to out.size(); returns the number of bytes.
  std::size_t read_slot(const GuestMemory& memory, GuestVirt slot, std::span<std::byte> out) const;

  /// A trap point in the text of processes, and the byte that its int3 has replaced.
  struct UserPoint {
    shim_user_point point;
    std::byte replaced{};
  };
  /// All that its lists lead to, once each: copied, and with offsets that lie in a page.
  std::vector<UserPoint> user_points(const GuestMemory& memory) const;

  /// Places in all slots that hold code.
  std::vector<GuestVirt> used_slots(const GuestMemory& memory) const;

  /// From now on its traps resume at once, unfired.
  Result<void> silence(PausedMachine& machine) const;
  /// Once no int3 or jump of it is left: the guest's breakpoints lead to its own kernel again, and
  /// it is nobody's.
  Result<void> give_gate_back(PausedMachine& machine) const;
  /// After that, once nobody is inside: no trace of it is left.
  Result<void> remove(PausedMachine& machine) const;
  /// Or while somebody is inside, of slots only: it is ours from now on, as if it had been
  /// installed. `places`: all that those who are inside stand at and return to; slots there stay as
  /// they are. Invalid when one of them is no slot. Else refuses what Shim::install() refuses.
  Result<std::unique_ptr<Shim>> take_over(PausedMachine& machine, const ShimKernelFacts& facts,
                                          std::span<const GuestVirt> places) const;

 private:
  struct Gate {
    GuestPhys at;
    std::array<std::byte, 16> kernels{};
  };
  ShimRemains(const ShimLayout& layout, GuestVirt home, std::optional<ShimMapping> mapping,
              std::optional<Gate> gate, const shim_header& header)
      : layout_(layout),
        home_(home),
        mapping_(mapping),
        gate_(gate),
        owner_{header.owner, header.owner_start},
        machine_(header.machine),
        user_points_(header.user_points) {}

  static Result<ShimRemains> check(const GuestMemory& memory, const ShimKernelFacts& facts,
                                   GuestPhys place, std::optional<Gate> gate);
  static std::optional<ShimRemains> find_out_of_reach(const GuestMemory& memory,
                                                      const ShimKernelFacts& facts,
                                                      std::optional<GuestMemory::Extent> set_aside);

  ShimLayout layout_;
  GuestVirt home_;
  std::optional<ShimMapping> mapping_;  // none may be there of what is out of reach
  std::optional<Gate> gate_;            // where it leads here
  bool out_of_reach_ = false;
  ProcessName owner_;
  std::uint64_t machine_;      // ProcessName::word() of the process that ran the guest
  std::uint64_t user_points_;  // shim_header::user_points
};

}  // namespace ringside::vmm
