// In this file, top to bottom: what a tracepoint is, making one, arming and disarming, watching.
#include "providers/tracepoint/tracepoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string_view>

#include "disasm/decoder.h"
#include "providers/tracepoint/address_index.h"
#include "providers/tracepoint/function_sites.h"
#include "providers/tracepoint/original_text.h"
#include "providers/tracepoint/site_examiner.h"
#include "vmm/arch/arch.h"
#include "vmm/base/check.h"

namespace ringside::providers {
namespace {

using guest_linux::Kernel;

using arch::kLongestInstruction;

enum class Stage : std::uint8_t {
  Prepared,  // slot and table entry are there, the text is untouched
  Armed,
  Retired,  // our byte is gone again; the shim still knows a trap that began before
  Parked,   // no such trap is left, and an int3 there is none of ours
  Dropped,  // the guest changed the byte under us
};

struct Point {
  Point(const ProbeSite& at, GuestVirt code) : site(at), slot(code) {}
  GuestVirt address() const { return site.address(); }
  std::byte original() const { return site.instruction().front(); }

  ProbeSite site;
  GuestVirt slot;
  std::uint32_t users = 0;
  std::atomic<Stage> stage = Stage::Prepared;  // changed by the fire thread, too
};

/// Every way into another kernel without a reset goes through machine_kexec(), also a crash's
/// (arch/x86/kernel/machine_kexec_64.c, since 2.6.13): the other vCPUs are stopped by then, and
/// this one still has its interrupt table.
Result<std::optional<GuestVirt>> find_farewell(const GuestReader& text,
                                               const guest_linux::SymbolTable& symbols) {
  const guest_linux::Symbol* const function = symbols.find("machine_kexec", "vmlinux");
  if (function == nullptr) return std::nullopt;  // a kernel without kexec
  return TRY(entry_site(text, *function, &symbols));
}

}  // namespace

struct TracepointTable::State final : OriginalText::Ours {
  State(vmm::Machine& of, vmm::Shim& with, Kernel& knows)
      : shim(with),
        table(knows.table()),
        live(of.memory(), knows.table()),
        watched(of.memory(), knows.table()),
        text(live, *this, knows),
        farewell(find_farewell(text, knows.symbols())),
        examiner(text, knows, farewell.value_or(std::nullopt)) {}

  vmm::Shim& shim;
  const vmm::PageTable table;  // the kernel's own, whatever a stopped vCPU is in
  std::mutex lock;  // of what drop_changed() looks at: points, by_address, changed, watched
  std::vector<TracepointTable::Slot> slots;
  std::deque<Point> points;  // by TracepointId; one function's follow each other as a rule
  AddressIndex index;
  vmm::PageTableReader live;
  vmm::PageTableReader watched;
  OriginalText text;
  const Result<std::optional<GuestVirt>> farewell;
  SiteExaminer examiner;
  std::vector<std::uint32_t> by_address;  // armed points, in the order of their addresses
  std::vector<GuestVirt> changed;         // found by arm() and disarm(), not yet reported
  std::uint64_t generation = 0;

  bool are_there() const override { return !points.empty(); }
  std::optional<std::byte> below(GuestVirt at) const override {
    const auto id = index.find(at);
    if (!id || points[*id].stage != Stage::Armed) return std::nullopt;
    return points[*id].original();
  }
  std::optional<std::byte> live_byte(GuestVirt at) const {
    std::byte byte;
    if (!watched.read(at, std::span(&byte, 1))) return std::nullopt;
    return byte;
  }
  bool is_unchanged(const ProbeSite& site) const {
    std::array<std::byte, kLongestInstruction> now;
    const auto expected = site.instruction();
    const auto bytes = std::span(now).first(expected.size());
    return live.read(site.address(), bytes) &&
           std::equal(bytes.begin(), bytes.end(), expected.begin());
  }
  /// The guest changed the text: from now on, an int3 there is its own.
  void drop(Point& point, std::vector<GuestVirt>& gone) const {
    point.stage = Stage::Dropped;
    shim.remove_entry(point.address());
    gone.push_back(point.address());
  }
  Result<GuestVirt> make_slot(const ProbeSite& site);
  Result<void> revive(Point& point, const ProbeSite& site);
  std::vector<std::uint32_t> choose_to_arm(std::vector<vmm::VirtualCodeWrite>& writes);
  void drop_changed(std::vector<GuestVirt>& gone);
  template <class Wanted>
  Result<void> restore(vmm::PausedMachine& machine, const Wanted& wanted);
};

TracepointTable::TracepointTable(vmm::Machine& machine, vmm::Shim& shim, Kernel& kernel)
    : state_(std::make_unique<State>(machine, shim, kernel)) {}

TracepointTable::~TracepointTable() = default;

const GuestReader& TracepointTable::original_text() const {
  return state_->text;
}

Result<ProbeSite> TracepointTable::examine(GuestVirt address, SitePolicy policy) {
  if (state_->examiner.find_unready()) look_again();
  return state_->examiner.examine(address, policy);
}

Result<GuestVirt> TracepointTable::State::make_slot(const ProbeSite& site) {
  const GuestVirt address = site.address();
  std::vector<std::byte> code;
  if (farewell && *farewell == address) code = shim.farewell(address);
  // Before the slot is the byte that the int3 replaces: for who comes when we have died.
  const GuestVirt place = TRY(shim.allocate_slot(1 + code.size() + site.displaced_size()));
  const GuestVirt slot = place.wrapping_add(1);
  if (!code.empty()) code = shim.farewell(slot);
  const GuestVirt begin = slot.wrapping_add(code.size());
  const auto moved = disasm::relocate(site.instruction(), address, begin);
  if (!moved) return refuse(address, moved.error().message);
  CHECK(moved->size() == site.displaced_size());
  code.insert(code.end(), moved->begin(), moved->end());
  code.insert(code.begin(), site.instruction().front());
  TRY(shim.write_slot(place, code));
  slots.push_back({begin, static_cast<std::uint32_t>(moved->size()), address,
                   static_cast<std::uint8_t>(site.instruction().size())});
  return slot;
}

/// A point that the shim has forgotten. A slot is good for the instruction that it was made of, so
/// where that is another one now, there is a new slot: a task may still be inside the old one.
Result<void> TracepointTable::State::revive(Point& point, const ProbeSite& site) {
  const bool same = std::ranges::equal(point.site.instruction(), site.instruction());
  const GuestVirt slot = same ? point.slot : TRY(make_slot(site));
  TRY(shim.add_entry(site.address(), slot));
  point.site = site;
  point.slot = slot;
  point.users = 0;
  point.stage = Stage::Prepared;
  return {};
}

Result<TracepointId> TracepointTable::add(const ProbeSite& site) {
  State& s = *state_;
  const GuestVirt address = site.address();
  const std::lock_guard lock(s.lock);
  if (const auto id = s.index.find(address)) {
    Point& point = s.points[*id];
    if (point.stage == Stage::Dropped || point.stage == Stage::Parked) {
      TRY(s.revive(point, site));
    } else if (!std::ranges::equal(point.site.instruction(), site.instruction())) {
      return refuse(address, "the guest changed its text");
    }
    ++point.users;
    return TracepointId{*id};
  }
  const GuestVirt slot = TRY(s.make_slot(site));
  TRY(s.shim.add_entry(address, slot));
  const auto id = static_cast<std::uint32_t>(s.points.size());
  s.points.emplace_back(site, slot).users = 1;
  s.index.insert(address, id);
  return TracepointId{id};
}

void TracepointTable::release(GuestVirt address) {
  State& s = *state_;
  const auto id = s.index.find(address);
  if (id && s.points[*id].users > 0) --s.points[*id].users;
}

bool TracepointTable::is_dropped(GuestVirt address) const {
  const auto id = state_->index.find(address);
  return id && state_->points[*id].stage == Stage::Dropped;
}

const Result<std::optional<GuestVirt>>& TracepointTable::farewell() const {
  return state_->farewell;
}

std::size_t TracepointTable::size() const {
  return state_->points.size();
}

std::span<const TracepointTable::Slot> TracepointTable::slots() const {
  return state_->slots;
}

/// Those that are used and not armed, less those that cannot be, which are dropped.
std::vector<std::uint32_t> TracepointTable::State::choose_to_arm(
    std::vector<vmm::VirtualCodeWrite>& writes) {
  std::vector<std::uint32_t> arming;
  ExaminedText function;  // of the point before: one look serves all points of a function
  bool unchanged = false;
  for (std::uint32_t id = 0; id < points.size(); ++id) {
    Point& point = points[id];
    const Stage stage = point.stage;
    if (point.users == 0 || (stage != Stage::Prepared && stage != Stage::Retired)) continue;
    if (point.site.text() != function) {
      function = point.site.text();
      unchanged = examiner.is_unchanged(function);
    }
    if (!unchanged || !is_unchanged(point.site) ||
        text.has_kprobe(point.address(), point.site.instruction().size())) {
      drop(point, changed);
      continue;
    }
    writes.push_back({point.address(), std::to_integer<std::uint8_t>(arch::kBreakpoint)});
    arming.push_back(id);
  }
  return arming;
}

Result<void> TracepointTable::arm(vmm::PausedMachine& machine) {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  TRY(s.shim.check_mapped(machine));
  look_again();
  TRY(s.text.trouble());
  std::vector<vmm::VirtualCodeWrite> writes;
  std::vector<std::uint32_t> arming = s.choose_to_arm(writes);
  for (const std::uint32_t id : arming) s.points[id].stage = Stage::Armed;
  const auto address_of = [&s](std::uint32_t id) { return s.points[id].address(); };
  std::ranges::sort(arming, {}, address_of);
  const auto before = static_cast<std::ptrdiff_t>(s.by_address.size());
  s.by_address.insert(s.by_address.end(), arming.begin(), arming.end());
  std::ranges::inplace_merge(s.by_address, s.by_address.begin() + before, {}, address_of);
  TRY(machine.write_code(s.table, writes));
  s.watched.forget();
  for (const std::uint32_t id : arming) {
    if (s.live_byte(s.points[id].address()) == arch::kBreakpoint) continue;
    return fail(ErrorCode::MachineGone,
                fmt::format("the machine says that it wrote a breakpoint at {:#x}, and there is "
                            "none; start it anew, and do not trust it",
                            s.points[id].address().raw()));
  }
  return {};
}

bool TracepointTable::is_text_changing(vmm::PausedMachine&) const {
  state_->live.forget();
  return state_->text.is_changing();
}

void TracepointTable::look_again() {
  if (state_->text.look_again()) ++state_->generation;
  state_->examiner.forget();
}

std::uint64_t TracepointTable::generation() const {
  return state_->generation;
}

/// Restores the armed ones for which wanted(point).
template <class Wanted>
Result<void> TracepointTable::State::restore(vmm::PausedMachine& machine, const Wanted& wanted) {
  TRY(shim.check_mapped(machine));
  drop_changed(changed);
  std::vector<vmm::VirtualCodeWrite> writes;
  for (const std::uint32_t id : by_address) {
    const Point& point = points[id];
    if (!wanted(point)) continue;
    writes.push_back({point.address(), std::to_integer<std::uint8_t>(point.original())});
  }
  auto written = writes.empty() ? Result<void>() : machine.write_code(table, writes);
  // By what lies there, not by the machine's word: the shim has to stay for any byte that is left.
  std::size_t left = 0;
  std::erase_if(by_address, [&](std::uint32_t id) {
    Point& point = points[id];
    if (!wanted(point)) return false;
    const bool restored = live_byte(point.address()) != arch::kBreakpoint;
    if (restored) point.stage = Stage::Retired;
    left += restored ? 0 : 1;
    return restored;
  });
  if (written && left != 0) {
    return fail(ErrorCode::MachineGone,
                fmt::format("the machine says that it restored the guest's code, but {} "
                            "breakpoints are still there; the shim stays for them",
                            left));
  }
  return written;
}

Result<void> TracepointTable::disarm(vmm::PausedMachine& machine) {
  const std::lock_guard lock(state_->lock);
  return state_->restore(machine, [](const Point&) { return true; });
}

Result<void> TracepointTable::disarm_unused(vmm::PausedMachine& machine) {
  const std::lock_guard lock(state_->lock);
  return state_->restore(machine, [](const Point& point) { return point.users == 0; });
}

void TracepointTable::park_unused() {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  for (Point& point : s.points) {
    if (point.users != 0 || (point.stage != Stage::Retired && point.stage != Stage::Prepared)) {
      continue;
    }
    s.shim.remove_entry(point.address());
    point.stage = Stage::Parked;
  }
}

bool TracepointTable::any_armed() const {
  const std::lock_guard lock(state_->lock);
  return !state_->by_address.empty();
}

bool TracepointTable::is_armed(TracepointId id) const {
  return id.value < state_->points.size() && state_->points[id.value].stage == Stage::Armed;
}

void TracepointTable::State::drop_changed(std::vector<GuestVirt>& gone) {
  watched.forget();
  // In the order of addresses, so that the reader's kept translations serve whole pages.
  std::erase_if(by_address, [&](std::uint32_t id) {
    Point& point = points[id];
    if (live_byte(point.address()) == arch::kBreakpoint) return false;
    drop(point, gone);
    return true;
  });
}

std::vector<GuestVirt> TracepointTable::drop_changed() {
  State& s = *state_;
  const std::unique_lock lock(s.lock, std::try_to_lock);
  if (!lock) return {};  // who changes them now looks, too
  std::vector<GuestVirt> gone = std::exchange(s.changed, {});
  s.drop_changed(gone);
  return gone;
}

}  // namespace ringside::providers
