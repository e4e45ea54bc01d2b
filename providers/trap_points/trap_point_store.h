// All trap points: by number, by address, and (those that stand) in the order of their addresses.
// For each it keeps how far it is, whether the shim's table has it, and whether the guest has
// changed its text. Used by the trap point table and its parts.
//
// Does not: read or write the guest's text. Whoever writes it reports here, in the same pause.
// Threads: any thread that holds the table's lock. The thread that adds points may also find and
// read them without the lock, since nobody else adds any; only `stage` may change meanwhile.
// Fire context: no.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "providers/trap_points/address_index.h"
#include "providers/trap_points/displaced_code.h"
#include "providers/trap_points/sites/original_text.h"
#include "providers/trap_points/sites/probe_site.h"
#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/shim/trap_table.h"

namespace ringside::providers {

struct TrapPoint {
  enum class Stage : std::uint8_t {
    Prepared,  // the slot is there; text and the shim's table are untouched
    Armed,
    Jumping,  // the same by a jump
    Retired,  // our byte is gone again; the shim still knows a trap that began before
    Parked,   // no such trap is left, and an int3 there is none of ours
    Dropped,  // the guest changed the byte under us
  };
  static bool is_standing(Stage stage) { return stage == Stage::Armed || stage == Stage::Jumping; }

  TrapPoint(const ProbeSite& at, GuestVirt code) : site(at), slot(code) {}

  GuestVirt address() const { return site.address(); }
  bool is_in_function_of(GuestVirt at) const;
  /// Whether arming is to make it stand.
  bool is_coming() const {
    return users != 0 && (stage == Stage::Prepared || stage == Stage::Retired);
  }
  /// Whether the whole instruction is there, and nothing in its stead.
  bool is_original(const GuestReader& reader) const;
  /// Whether its jump displaces the instruction that begins at `at`. The place of the jump itself
  /// does not count: a vCPU still passes it.
  bool displaces(GuestVirt at) const;
  /// The code that stands there while it is armed, and the text that it replaced.
  std::span<const std::byte> code() const;
  std::span<const std::byte> replaced(Stage standing) const;

  ProbeSite site;
  GuestVirt slot;
  std::uint32_t users = 0;
  std::optional<std::uint8_t> recording{};     // its traps go into rings, by this fetch list
  bool jump_is_known = false;                  // whether one may stand here was found out
  bool is_in_table = false;                    // the shim's: its entry is enabled
  std::atomic<Stage> stage = Stage::Prepared;  // changed by the fire thread, too
  const Jump* jump = nullptr;                  // none: it has to be an int3
};

class TrapPointStore final : public OriginalText::ReplacedText {
 public:
  using Id = std::uint32_t;  // TrapPointId's value
  using Which = std::function<bool(const TrapPoint&)>;

  /// Both must outlive it; `displaced` may be made after it.
  TrapPointStore(vmm::TrapTable& shim, DisplacedCode& displaced)
      : shim_(shim), displaced_(displaced) {}

  bool are_there() const override { return !points_.empty(); }
  std::span<const std::byte> below(GuestVirt at) const override;

  /// Makes one, or gives it one more user. The same address gives the same number.
  Result<Id> add(const ProbeSite& site);
  void release(GuestVirt address);
  /// TrapPointTable::record_at() and recording_at().
  Result<void> record_at(std::span<const GuestVirt> addresses, std::uint8_t list);
  std::optional<std::uint8_t> recording_at(GuestVirt address) const;
  std::size_t size() const { return points_.size(); }
  const TrapPoint& operator[](Id id) const { return points_[id]; }
  std::optional<Id> find(GuestVirt address) const { return index_.find(address); }
  /// The trap points of one function usually follow each other.
  const std::deque<TrapPoint>& all() const { return points_; }
  /// In the order of their addresses.
  std::span<const Id> standing() const { return standing_; }
  std::size_t count_jumping() const;
  std::size_t count_recording() const;
  void sort_by_address(std::vector<Id>& ids) const;

  /// Empty: none may stand here.
  void set_jump(Id id, const Jump* jump);
  /// From now on int3s there are ours. Not before: until then a kprobe of the guest's own, which we
  /// have not seen yet, has its hits.
  Result<void> enter_table(std::span<const Id> ids);
  /// From now on an int3 there is the guest's own. That is also so while a jump stands there: if a
  /// kprobe changes the first byte of a jump, no slot fits the rest.
  void leave_table(Id id) { leave_table(points_[id]); }

  /// They stand, each at the stage of the same place. They come in the order of their addresses.
  void mark_standing(std::span<const Id> ids, std::span<const TrapPoint::Stage> stages);
  /// Jumps that are int3s by now.
  void mark_narrowed(std::span<const Id> ids);
  /// Marks trap points for which restored(point) holds as not standing any more.
  void retire(const Which& restored);
  /// Parks trap points that do not stand: those without users; and all of them.
  void park_unused();
  void park_all();

  /// The guest changed the text: from now on, an int3 there is its own. The first is for one that
  /// does not stand.
  void drop(Id id) { drop(points_[id]); }
  void drop_standing(std::span<const Id> ids);
  /// Drops these trap points; take_dropped() tells where they stood.
  void drop_in(const guest_linux::Kernel::AddressRange& range);
  /// Where they were dropped, once.
  std::vector<GuestVirt> take_dropped();

 private:
  Result<void> revive(TrapPoint& point, const ProbeSite& site);
  Result<void> take_slots_for(std::span<TrapPoint* const> points, std::uint8_t list);
  void leave_table(TrapPoint& point);
  void drop(TrapPoint& point);
  void forget_dropped();
  void park(const Which& wanted);

  vmm::TrapTable& shim_;
  DisplacedCode& displaced_;
  std::deque<TrapPoint> points_;
  AddressIndex index_;
  std::vector<Id> standing_;
  std::vector<GuestVirt> dropped_;  // found on the way, not yet told
};

}  // namespace ringside::providers
