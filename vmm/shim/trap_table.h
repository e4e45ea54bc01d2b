// The half of the shim that arming uses: slots for displaced code, and the table that leads from a
// trap point to its slot. Used by the trap point table and what arms it. Does not: write int3s,
// decode instructions, or decide where a trap point may stand.
//
// Fire context: state() yes; everything else no. Threads: state() and under_way() on any; all else
// on one at a time, also while traps are served.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/machine.h"
#include "vmm/shim/fetch_list.h"
#include "vmm/shim/shim_layout.h"

namespace ringside::vmm {

/// A snapshot of the mailboxes whose traps had begun and had no answer.
using TrapsUnderWay = std::vector<std::uint64_t>;

/// The bytes before a slot. The list of its trap points is add_entry()'s and
/// record_at()'s.
struct SlotHeader {
  static constexpr std::size_t kBytes = SHIM_SLOT_HEADER;
  std::byte replaced{};            // by the int3; also for the next tracer, should we be killed
  std::uint8_t return_length = 0;  // of the instruction, if the slot ends with a return; else 0

  std::array<std::byte, kBytes> encode() const {
    std::array<std::byte, kBytes> bytes{};
    bytes[kBytes - SHIM_SLOT_LENGTH] = static_cast<std::byte>(return_length);
    bytes[kBytes - SHIM_SLOT_REPLACED] = replaced;
    return bytes;
  }
};

/// A trap point in the text of processes (struct shim_user_point).
struct UserTrapPoint {
  std::uint16_t offset = 0;           // of the int3 in its page
  std::uint16_t code = 0;             // offset in the page of 8 bytes, by which the stub knows it
  std::int32_t distance = 0;          // bytes from the int3 to where the process goes on
  std::uint64_t mask = 0, bytes = 0;  // of those 8 bytes, and what they are under it
  std::byte replaced{};               // by the int3
  std::uint32_t down = 0;  // so many bytes the stack pointer goes down before that; at most 2^30
  bool makes_frame = false;  // the frame pointer becomes the stack pointer instead
  // For those who take it out, should we be killed:
  GuestVirt inode;         // the file's struct inode
  std::uint64_t page = 0;  // the page in the file
  std::uint16_t slot = 0;  // offset in the page of what is written there for the instruction
  std::span<const std::byte> before{};  // what stood there, at most SHIM_USER_SLOT_BYTES
  std::uint64_t semaphore = 0;          // offset in the file of the probe's; 0: it has none
};

/// The state of a shim in the guest's memory.
enum class ShimState : std::uint8_t {
  There,
  GuestLeft,    // the guest has started another kernel
  Overwritten,  // something else is in the region
  Retired,      // by Shim::retire()
};

class TrapTable {
 public:
  virtual ~TrapTable() = default;

  /// Takes `size` bytes of slot space, and those of a header before them; returns the slot's
  /// address in the guest. Limit when there is no room left. Slot space is never reused while one
  /// tracer has the shim, nor is what somebody was inside of when it got it.
  virtual Result<GuestVirt> allocate_slot(std::size_t size) = 0;
  /// How many bytes are left for slots.
  virtual std::uint64_t slot_room() const = 0;
  /// Whether trap points with the same code share a slot: room is scarce.
  virtual bool shares_slots() const { return false; }
  /// Fills a slot and the header before it; only before an entry leads to it.
  virtual Result<void> write_slot(GuestVirt slot, std::span<const std::byte> code,
                                  SlotHeader header = {}) = 0;
  /// Adds an entry: once it is enabled, a trap at `address` resumes in `slot`. Until then an int3
  /// there is the guest's own. Other threads may serve traps meanwhile. The address may have a
  /// disabled entry already, with the same slot or another one.
  virtual Result<void> add_entry(GuestVirt address, GuestVirt slot) = 0;
  /// How many CPUs have rings for records; 0: no trap point can record.
  virtual std::uint32_t ring_count() const { return 0; }
  /// From enable_entries() on, traps at these addresses are recorded (record_rings.h). They have
  /// entries that are disabled. `list`: the number of their fetch list, of Shim::set_fetch_lists();
  /// 0: they need none. All that share a slot record alike.
  virtual Result<void> record_at(std::span<const GuestVirt> addresses, std::uint8_t list = 0) {
    (void)list;
    if (addresses.empty()) return {};
    return fail(ErrorCode::Unsupported, "there are no rings");
  }
  /// From now on int3s at these addresses, which have entries, resume at their slots. In the pause
  /// in which they are written, before them.
  virtual Result<void> enable_entries(std::span<const GuestVirt> addresses) = 0;
  /// From now on an int3 at `address` goes to the guest's own handler. For code that the guest has
  /// changed, whose slot holds an old instruction. Others may serve traps meanwhile.
  virtual void disable_entry(GuestVirt address) = 0;
  /// Call it after entries are enabled and before their int3s are written. A trap that began
  /// earlier and found its entry disabled then looks it up again.
  virtual void note_arming() = 0;

  /// The address that the record of a jump calls (vmm/shim/jump_record.h); empty before there is a
  /// shim.
  virtual std::optional<GuestVirt> jump_entry() const = 0;
  /// Code for the beginning of the slot at `slot`, before its instruction. It tells the host that
  /// the guest leaves its kernel, and lets all later traps resume at once. It changes no register
  /// and no flag. kKexecNoticeBytes long.
  virtual Result<std::vector<std::byte>> kexec_notice(GuestVirt slot) = 0;
  /// Code for the beginning of the slot at `slot`, for the function that searches the kernel's
  /// exception table. If the function's first argument is a slot of add_fault(), the code replaces
  /// it by the instruction's own address. It needs no host, and changes no other register and no
  /// flag. kFaultSearchBytes long.
  static constexpr std::size_t kKexecNoticeBytes = SHIM_KEXEC_NOTICE_BYTES,
                               kFaultSearchBytes = SHIM_FAULT_SEARCH_BYTES;
  virtual Result<std::vector<std::byte>> fault_search(GuestVirt slot) = 0;
  /// The instruction at `slot` may fault, and the kernel knows how to mend that at `place`.
  virtual Result<void> add_fault(GuestVirt slot, GuestVirt place) = 0;

  /// From now on there may be trap points in the text of processes; once. Unsupported, with the
  /// reason, where there cannot.
  virtual Result<void> serve_processes(const FetchFacts& facts) {
    (void)facts;
    return fail(ErrorCode::Unsupported, "there is no stub");
  }
  /// Describes a trap point in the text of processes; an int3 there is not ours yet. Returns its
  /// name, the address that its traps have, and that record_at() takes before it is enabled.
  virtual Result<GuestVirt> add_user_point(const UserTrapPoint& point) {
    (void)point;
    return fail(ErrorCode::Unsupported, "there is no stub");
  }
  /// The same for one that is not known yet: takes its name and room. describe_user_point(), before
  /// it is enabled, tells the rest.
  virtual Result<GuestVirt> reserve_user_point() {
    return fail(ErrorCode::Unsupported, "there is no stub");
  }
  virtual Result<void> describe_user_point(GuestVirt name, const UserTrapPoint& point) {
    (void)name, (void)point;
    return fail(ErrorCode::Unsupported, "there is no stub");
  }
  /// From now on it has a semaphore, at this offset of the file.
  virtual Result<void> note_semaphore(GuestVirt name, std::uint64_t semaphore) {
    (void)name, (void)semaphore;
    return fail(ErrorCode::Unsupported, "there is no stub");
  }
  /// From now on int3s of these are ours: before they are written. Each once.
  virtual Result<void> enable_user_points(std::span<const GuestVirt> names) {
    (void)names;
    return fail(ErrorCode::Unsupported, "there is no stub");
  }
  /// An int3 of it is not ours any more: after none is left.
  virtual void forget_user_point(GuestVirt name) { (void)name; }

  virtual ShimPlace place() const = 0;
  /// A state other than There is final; nothing is written to the region from then on.
  virtual ShimState state() const = 0;
  /// Invalid unless the guest runs the kernel that the shim was put into: its page tables lead to
  /// the shim. Asked of vCPU 0, through which text is written, and of all once there is doubt.
  virtual Result<void> check_mapped(PausedMachine& machine) const = 0;
  /// The traps that need an answer now; of a paused guest, all that began before. Any thread.
  virtual TrapsUnderWay under_way() const = 0;
  /// Whether each of them has its answer or has gone on without one.
  virtual bool have_answers(const TrapsUnderWay& traps) const = 0;
};

}  // namespace ringside::vmm
