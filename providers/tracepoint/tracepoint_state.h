// The state of the tracepoint table. Its functions are in three files: making tracepoints and
// looking at them (tracepoint.cc), jumps in their stead (tracepoint_jumps.cc), arming and disarming
// (tracepoint_arming.cc). Included by these only. Displaced code is DisplacedCode's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "providers/tracepoint/address_index.h"
#include "providers/tracepoint/code_writes.h"
#include "providers/tracepoint/displaced_code.h"
#include "providers/tracepoint/jump_run.h"
#include "providers/tracepoint/sites/original_text.h"
#include "providers/tracepoint/sites/site_examiner.h"
#include "providers/tracepoint/tracepoint.h"
#include "vmm/arch/arch.h"
#include "vmm/linux/hardware_breakpoints.h"

namespace ringside::providers {

struct TracepointTable::State final : OriginalText::ReplacedText {
  using Kernel = guest_linux::Kernel;

  static constexpr std::uint32_t kNoJump = ~std::uint32_t{0};

  enum class Stage : std::uint8_t {
    Prepared,  // the slot is there; text and the shim's table are untouched
    Armed,
    Jumping,  // the same by a jump
    Retired,  // our byte is gone again; the shim still knows a trap that began before
    Parked,   // no such trap is left, and an int3 there is none of ours
    Dropped,  // the guest changed the byte under us
  };

  struct Point {
    Point(const ProbeSite& at, GuestVirt code) : site(at), slot(code) {}
    GuestVirt address() const { return site.address(); }

    /// Whether arming is to make it stand.
    bool is_coming() const {
      return users != 0 && (stage == Stage::Prepared || stage == Stage::Retired);
    }

    ProbeSite site;
    GuestVirt slot;
    std::uint32_t users = 0;
    std::uint32_t jump = kNoJump;                // index
    bool jump_is_known = false;                  // whether one may stand here was found out
    bool is_in_table = false;                    // the shim's: its entry is enabled
    std::atomic<Stage> stage = Stage::Prepared;  // changed by the fire thread, too
  };
  static bool is_standing(Stage stage) { return stage == Stage::Armed || stage == Stage::Jumping; }
  static bool is_in_function_of(GuestVirt at, const ProbeSite& site) {
    return at.is_in(site.text().begin, std::max<std::uint64_t>(site.text().size, 1));
  }

  State(vmm::Machine& of, vmm::Shim& with, Kernel& knows);

  vmm::Shim& shim;
  const Kernel& kernel;
  const vmm::PageTable table;  // the kernel's own, whatever a stopped vCPU is in
  // Of what other threads look at: points, by_address, aside, changed, watched.
  std::mutex lock;
  std::deque<Point> points;  // by TracepointId; one function's follow each other as a rule
  std::deque<Jump> jumps;
  AddressIndex index;
  vmm::PageTableReader live;
  vmm::PageTableReader watched;
  OriginalText text;
  const Result<std::optional<GuestVirt>> kexec_site;
  const Result<GuestVirt> fault_search;
  DisplacedCode displaced;
  SiteExaminer examiner;
  JumpRunFinder runs;
  TracepointTable::FindStanding find_standing;  // none: no jumps
  TracepointTable::IsInside is_inside;
  std::optional<std::vector<GuestVirt>> standing;  // in this pause
  std::vector<Kernel::AddressRange> draining;      // records of jumps that arming has narrowed
  std::vector<std::uint32_t> by_address;           // armed points, in the order of their addresses
  std::vector<std::uint32_t> aside;                // those that step_aside() has restored
  std::vector<GuestVirt> changed;                  // found on the way, not yet reported
  guest_linux::HardwareBreakpoints hardware;
  std::vector<GuestVirt> in_place;  // where the guest has had one: no jump may displace these
  std::atomic<bool> is_copied_by_kprobe = false;  // code of the guest's leads into the shim
  std::uint64_t generation = 0;
  std::optional<Result<ProbeSite>> searching;  // what an examination of fault_search has said
  std::optional<std::uint32_t> search;         // that point, once some may fault

  bool are_there() const override { return !points.empty(); }
  std::span<const std::byte> below(GuestVirt at) const override {
    const auto id = index.find(at);
    if (!id) return {};
    const Stage stage = points[*id].stage;
    return is_standing(stage) ? replaced_by(points[*id], stage) : std::span<const std::byte>();
  }
  /// The code that stands there while it is armed, and the text that it replaced.
  std::span<const std::byte> code_of(const Point& point) const {
    return point.stage == Stage::Jumping ? std::span<const std::byte>(jumps[point.jump].code)
                                         : std::span(&arch::kBreakpoint, 1);
  }
  std::span<const std::byte> replaced_by(const Point& point, Stage stage) const {
    return stage == Stage::Jumping ? jumps[point.jump].replaced()
                                   : point.site.instruction().first(1);
  }
  /// Whether what we wrote there is there.
  bool stands(const Point& point) const {
    return has_bytes(watched, point.address(), code_of(point));
  }
  static bool is_unchanged(const GuestReader& reader, const ProbeSite& site) {
    return has_bytes(reader, site.address(), site.instruction());
  }
  /// The guest changed the text: from now on, an int3 there is its own.
  void drop(Point& point, std::vector<GuestVirt>& gone) {
    point.stage = Stage::Dropped;
    leave_table(point);
    gone.push_back(point.address());
  }
  /// From now on an int3 there is the guest's own: also where a jump stands, for what a kprobe in
  /// its first byte does to the others no slot knows.
  void leave_table(Point& point) {
    if (std::exchange(point.is_in_table, false)) shim.disable_entry(point.address());
  }
  Result<void> enter_table(std::span<const std::uint32_t> ids);
  bool is_search(const Point& point) const { return search && &point == &points[*search]; }
  const Result<ProbeSite>& search_site();
  Result<void> keep_search();
  Result<std::uint32_t> add(const ProbeSite& site);
  Result<void> revive(Point& point, const ProbeSite& site);
  void prepare_jump(Point& point);
  std::vector<std::uint32_t> choose_to_arm();
  Kernel::AddressRange kept_clear(const Point& point) const;
  std::optional<std::uint32_t> jump_over(GuestVirt at) const;
  bool displaces(const Point& point, GuestVirt at) const;
  bool displaces_breakpoint(const Point& point) const;
  std::size_t count_jumping() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        by_address, [this](std::uint32_t id) { return points[id].stage == Stage::Jumping; }));
  }
  void note_in_place(GuestVirt at);
  bool may_jump(const Point& point) const;
  std::vector<std::uint32_t> jumps_in_the_way() const;
  Result<void> check_drained(vmm::PausedMachine& machine, std::span<const GuestVirt> standing);
  Result<void> arm(vmm::PausedMachine& machine);
  Result<void> narrow(vmm::PausedMachine& machine, std::vector<std::uint32_t> ids);
  void sort_by_address(std::vector<std::uint32_t>& ids) const;
  Result<void> write_breakpoints(vmm::PausedMachine& machine, std::vector<std::uint32_t> arming,
                                 TrapForm form);
  Result<void> write_traps(vmm::PausedMachine& machine,
                           std::span<const vmm::VirtualCodeWrite> writes);
  bool are_copied(std::span<const std::uint32_t> ids) const;
  void drop_changed(std::vector<GuestVirt>& gone);
  template <class Wanted>
  void park(const Wanted& wanted);
  template <class Wanted>
  Result<void> restore(vmm::PausedMachine& machine, const Wanted& wanted);
};

}  // namespace ringside::providers
