// In this file, top to bottom: what a tracepoint is, making one, arming and disarming, watching.
#include "providers/tracepoint/tracepoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <string_view>

#include "disasm/decoder.h"
#include "providers/tracepoint/address_index.h"
#include "providers/tracepoint/original_text.h"
#include "providers/tracepoint/site_examiner.h"
#include "vmm/base/check.h"

namespace ringside::providers {
namespace {

using guest_linux::Kernel;

constexpr std::byte kInt3{0xcc};
using disasm::kLongestInstruction;

enum class Stage : std::uint8_t {
  Prepared,  // slot and table entry are there, the text is untouched
  Armed,
  Retired,  // our byte is gone again; a trap that began before is still known
  Dropped,  // the guest changed the byte under us
};

struct Point {
  explicit Point(const ProbeSite& at) : site(at) {}
  GuestVirt address() const { return site.address(); }
  std::byte original() const { return site.instruction().front(); }

  ProbeSite site;
  std::atomic<Stage> stage = Stage::Prepared;  // read by the fire thread
};

tl::unexpected<Error> refuse(GuestVirt address, std::string_view why) {
  return fail(ErrorCode::Unsupported,
              fmt::format("no probe can stand at {:#x}: {}", address.raw(), why));
}

}  // namespace

struct TracepointTable::State final : OriginalText::Ours {
  State(vmm::Machine& of, vmm::Shim& with, Kernel& knows)
      : shim(with),
        live(of.memory(), knows.table()),
        text(live, *this, knows),
        examiner(text, knows) {}

  vmm::Shim& shim;
  std::vector<TracepointTable::Slot> slots;
  std::deque<Point> points;  // by TracepointId; one function's follow each other as a rule
  AddressIndex index;
  vmm::PageTableReader live;
  OriginalText text;
  SiteExaminer examiner;
  std::vector<std::uint32_t> by_address;  // armed points, in the order of their addresses
  std::vector<GuestVirt> changed;         // found by arm() and disarm(), not yet reported
  std::optional<GuestVirt> farewell;
  std::uint64_t generation = 0;

  std::optional<std::byte> below(GuestVirt at) const override {
    const auto id = index.find(at);
    if (!id || points[*id].stage != Stage::Armed) return std::nullopt;
    return points[*id].original();
  }
  std::optional<std::byte> live_byte(GuestVirt at) const {
    std::byte byte;
    if (!live.read(at, std::span(&byte, 1))) return std::nullopt;
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

Result<TracepointId> TracepointTable::add(const ProbeSite& site) {
  State& s = *state_;
  const GuestVirt address = site.address();
  if (const auto id = s.index.find(address)) {
    if (s.points[*id].stage == Stage::Dropped) return refuse(address, "the guest changed its text");
    return TracepointId{*id};
  }
  std::vector<std::byte> code;
  if (s.farewell == address) code = s.shim.farewell(address);
  const GuestVirt slot = TRY(s.shim.allocate_slot(code.size() + site.displaced_size()));
  if (!code.empty()) code = s.shim.farewell(slot);
  const GuestVirt begin(slot.raw() + code.size());
  const auto moved = disasm::relocate(site.instruction(), address, begin);
  if (!moved) return refuse(address, moved.error().message);
  CHECK(moved->size() == site.displaced_size());
  code.insert(code.end(), moved->begin(), moved->end());
  TRY(s.shim.write_slot(slot, code));
  TRY(s.shim.add_entry(address, slot));
  const auto id = static_cast<std::uint32_t>(s.points.size());
  s.points.emplace_back(site);
  s.slots.push_back({begin, static_cast<std::uint32_t>(moved->size()), address,
                     static_cast<std::uint8_t>(site.instruction().size())});
  s.index.insert(address, id);
  return TracepointId{id};
}

void TracepointTable::set_farewell(GuestVirt address) {
  state_->farewell = address;
  state_->examiner.set_farewell(address);
}

std::size_t TracepointTable::size() const {
  return state_->points.size();
}

std::span<const TracepointTable::Slot> TracepointTable::slots() const {
  return state_->slots;
}

Result<void> TracepointTable::arm(vmm::PausedMachine& machine) {
  State& s = *state_;
  TRY(s.shim.check_mapped(machine));
  s.live.forget();
  s.text.look_again();
  TRY(s.text.trouble());
  std::vector<vmm::CodeWrite> writes;
  std::vector<std::uint32_t> arming;
  ExaminedText text;  // of the point before: one look serves all points of a function
  bool unchanged = false;
  for (std::uint32_t id = 0; id < s.points.size(); ++id) {
    Point& point = s.points[id];
    const Stage stage = point.stage;
    if (stage != Stage::Prepared && stage != Stage::Retired) continue;
    if (point.site.text() != text) {
      text = point.site.text();
      unchanged = s.examiner.is_unchanged(text);
    }
    if (!unchanged || !s.is_unchanged(point.site) ||
        s.text.has_kprobe(point.address(), point.site.instruction().size())) {
      s.drop(point, s.changed);
      continue;
    }
    writes.push_back({point.address(), std::to_integer<std::uint8_t>(kInt3)});
    arming.push_back(id);
  }
  for (const std::uint32_t id : arming) s.points[id].stage = Stage::Armed;
  s.by_address.insert(s.by_address.end(), arming.begin(), arming.end());
  std::sort(s.by_address.begin(), s.by_address.end(), [&s](std::uint32_t a, std::uint32_t b) {
    return s.points[a].address() < s.points[b].address();
  });
  TRY(machine.write_code(writes));
  for (const std::uint32_t id : arming) {
    if (s.live_byte(s.points[id].address()) == kInt3) continue;
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

Result<void> TracepointTable::disarm(vmm::PausedMachine& machine) {
  State& s = *state_;
  TRY(s.shim.check_mapped(machine));
  const auto gone = drop_changed();
  s.changed.insert(s.changed.end(), gone.begin(), gone.end());
  std::vector<vmm::CodeWrite> writes;
  writes.reserve(s.by_address.size());
  for (const std::uint32_t id : s.by_address) {
    const Point& point = s.points[id];
    writes.push_back({point.address(), std::to_integer<std::uint8_t>(point.original())});
  }
  auto written = machine.write_code(writes);
  // By what lies there, not by the machine's word: the shim has to stay for any byte that is left.
  std::erase_if(s.by_address, [&](std::uint32_t id) {
    Point& point = s.points[id];
    const bool restored = s.live_byte(point.address()) != kInt3;
    if (restored) point.stage = Stage::Retired;
    return restored;
  });
  if (written && any_armed()) {
    return fail(ErrorCode::MachineGone,
                fmt::format("the machine says that it restored the guest's code, but {} "
                            "breakpoints are still there; the shim stays for them",
                            s.by_address.size()));
  }
  return written;
}

bool TracepointTable::any_armed() const {
  return !state_->by_address.empty();
}

std::optional<TracepointId> TracepointTable::find(GuestVirt address) const {
  const auto id = state_->index.find(address);
  if (!id || state_->points[*id].stage == Stage::Prepared) return std::nullopt;
  return TracepointId{*id};
}

bool TracepointTable::is_armed(TracepointId id) const {
  return id.value < state_->points.size() && state_->points[id.value].stage == Stage::Armed;
}

std::vector<GuestVirt> TracepointTable::drop_changed() {
  State& s = *state_;
  s.live.forget();
  std::vector<GuestVirt> gone = std::exchange(s.changed, {});
  // In the order of addresses, so that the reader's kept translations serve whole pages.
  std::erase_if(s.by_address, [&](std::uint32_t id) {
    Point& point = s.points[id];
    if (s.live_byte(point.address()) == kInt3) return false;
    s.drop(point, gone);
    return true;
  });
  return gone;
}

}  // namespace ringside::providers
