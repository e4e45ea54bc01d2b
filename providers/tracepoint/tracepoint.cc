// In this file, top to bottom: text without our breakpoints, where an int3 may stand, making a
// tracepoint, arming and disarming, watching.
#include "providers/tracepoint/tracepoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>

#include "disasm/decoder.h"
#include "providers/tracepoint/address_index.h"
#include "providers/tracepoint/function_sites.h"
#include "vmm/base/check.h"

namespace ringside::providers {
namespace {

using guest_linux::Kernel;
using guest_linux::Symbol;

constexpr std::byte kInt3{0xcc};
constexpr std::uint64_t kMaxFunction = 1 << 20;
constexpr std::size_t kLongestInstruction = 15;

enum class Stage : std::uint8_t {
  Prepared,  // slot and table entry are there, the text is untouched
  Armed,
  Retired,  // our byte is gone again; a trap that began before is still known
  Dropped,  // the guest changed the byte under us
};

struct Point {
  Point(GuestVirt at, std::span<const std::byte> bytes)
      : address(at), length(static_cast<std::uint8_t>(bytes.size())) {
    CHECK(!bytes.empty() && bytes.size() <= instruction.size());
    std::copy(bytes.begin(), bytes.end(), instruction.begin());
  }
  std::byte original() const { return instruction.front(); }

  GuestVirt address;
  std::array<std::byte, kLongestInstruction> instruction{};  // that the slot was made from
  std::uint8_t length;
  std::atomic<Stage> stage = Stage::Prepared;  // read by the fire thread
};

tl::unexpected<Error> refuse(GuestVirt address, std::string_view why) {
  return fail(ErrorCode::Unsupported,
              fmt::format("no probe can stand at {:#x}: {}", address.raw(), why));
}

/// Kernel text with the original bytes where our int3s are.
class OriginalText final : public GuestReader {
 public:
  OriginalText(const vmm::PageTableReader& live, const std::deque<Point>& points,
               const AddressIndex& index)
      : live_(live), points_(points), index_(index) {}

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    live_.forget();  // a module may have come or gone since the last read
    const auto done = live_.read(at, out);
    const std::size_t copied =
        done ? out.size() : std::min<std::uint64_t>(done.error().address - at.raw(), out.size());
    for (std::size_t i = 0; i < copied; ++i) {
      if (out[i] != kInt3) continue;
      const auto id = index_.find(GuestVirt(at.raw() + i));
      if (id && points_[*id].stage == Stage::Armed) out[i] = points_[*id].original();
    }
    return done;
  }

 private:
  const vmm::PageTableReader& live_;
  const std::deque<Point>& points_;
  const AddressIndex& index_;
};

/// The last instruction boundary that a sweep proved, so that consecutive checks in one function
/// do not start over.
struct Boundary {
  GuestVirt function, at;
};

}  // namespace

struct TracepointTable::State {
  State(vmm::Machine& of, vmm::Shim& with, const Kernel& knows)
      : shim(with), kernel(knows), live(of.memory(), knows.table()), text(live, points, index) {}

  vmm::Shim& shim;
  const Kernel& kernel;
  std::vector<TracepointTable::Slot> slots;
  std::deque<Point> points;  // by TracepointId
  AddressIndex index;
  vmm::PageTableReader live;
  OriginalText text;
  std::vector<std::uint32_t> by_address;  // armed points, in the order of their addresses
  std::vector<GuestVirt> changed;         // found by arm() and disarm(), not yet reported
  mutable Boundary boundary;
  mutable std::vector<std::byte> buffer;

  std::optional<std::byte> live_byte(GuestVirt at) const {
    std::byte byte;
    if (!live.read(at, std::span(&byte, 1))) return std::nullopt;
    return byte;
  }
  bool is_unchanged(const Point& point) const {
    std::array<std::byte, kLongestInstruction> now;
    const auto bytes = std::span(now).first(point.length);
    return live.read(point.address, bytes) &&
           std::equal(bytes.begin(), bytes.end(), point.instruction.begin());
  }
  /// The guest changed the text: from now on, an int3 there is its own.
  void drop(Point& point, std::vector<GuestVirt>& gone) const {
    point.stage = Stage::Dropped;
    shim.remove_entry(point.address);
    gone.push_back(point.address);
  }
  Result<void> check_ranges(GuestVirt address, Policy policy) const;
  Result<std::span<const std::byte>> instruction_at(GuestVirt address,
                                                    const Symbol& function) const;
  Result<void> check_patched(GuestVirt address, std::size_t length) const;
  Result<std::span<const std::byte>> check(GuestVirt address, Policy policy) const;
};

Result<void> TracepointTable::State::check_ranges(GuestVirt address, Policy policy) const {
  const auto& symbols = kernel.symbols();
  for (const auto& range : kernel.forbidden_text()) {
    if (!range.contains(address)) continue;
    const Symbol* start = symbols.find("__noinstr_text_start");
    const Symbol* end = symbols.find("__noinstr_text_end");
    const bool noinstr =
        start != nullptr && end != nullptr && address >= start->address && address < end->address;
    if (policy == Policy::AllowNoinstr && noinstr) continue;
    return refuse(address, "the kernel cannot take a breakpoint in this part of its text");
  }
  return {};
}

/// The bytes of the instruction at `address`, if the function's instructions lead there. The span
/// is good until the next call.
Result<std::span<const std::byte>> TracepointTable::State::instruction_at(
    GuestVirt address, const Symbol& function) const {
  if (function.size == 0 || function.size > kMaxFunction) {
    return refuse(address, "its function has no known end");
  }
  const bool known = boundary.function == function.address && boundary.at <= address;
  const GuestVirt from = known ? boundary.at : function.address;
  const std::uint64_t to = function.address.raw() + function.size;  // the symbol covers address
  buffer.resize(std::min<std::uint64_t>(to, address.raw() + kLongestInstruction) - from.raw());
  if (!text.read(from, buffer)) return refuse(address, "its text cannot be read");

  std::size_t at = 0;
  const std::size_t goal = address.raw() - from.raw();
  while (at < goal) {
    const auto in = disasm::decode(std::span(buffer).subspan(at), GuestVirt(from.raw() + at));
    if (!in) return refuse(address, "the text before it does not decode");
    at += in->length;
  }
  if (at != goal) return refuse(address, "it lies inside an instruction");
  const auto in = disasm::decode(std::span(buffer).subspan(at), address);
  if (!in) return refuse(address, "it does not decode");
  boundary = {function.address, address};
  return std::span<const std::byte>(buffer).subspan(at, in->length);
}

/// Whole instructions move to the slot, so no byte of them may be one that the guest patches.
Result<void> TracepointTable::State::check_patched(GuestVirt address, std::size_t length) const {
  const auto sites = kernel.patched_sites();
  constexpr std::uint64_t kLongestSite = 255;
  const GuestVirt lowest(address.raw() - std::min(address.raw(), kLongestSite));
  auto site =
      std::lower_bound(sites.begin(), sites.end(), lowest,
                       [](const Kernel::PatchedSite& a, GuestVirt b) { return a.address < b; });
  for (; site != sites.end() && site->address.raw() < address.raw() + length; ++site) {
    if (site->address.raw() + std::max<std::uint64_t>(site->length, 1) > address.raw()) {
      return refuse(address,
                    fmt::format("{}, which the kernel handles by its address", site->what));
    }
  }
  return {};
}

Result<std::span<const std::byte>> TracepointTable::State::check(GuestVirt address,
                                                                 Policy policy) const {
  const Symbol* function = kernel.symbols().at(address);
  if (function == nullptr || !function->is_text()) {
    return refuse(address, "it is not in the kernel's text");
  }
  TRY(check_ranges(address, policy));
  const auto bytes = TRY(instruction_at(address, *function));
  TRY(check_patched(address, bytes.size()));
  const auto ftrace = ftrace_site(text, *function, &kernel.symbols());
  if (ftrace && address < ftrace->end && address.raw() + bytes.size() > ftrace->begin.raw()) {
    return refuse(address, "the guest's own ftrace patches it");
  }
  return bytes;
}

TracepointTable::TracepointTable(vmm::Machine& machine, vmm::Shim& shim, const Kernel& kernel)
    : state_(std::make_unique<State>(machine, shim, kernel)) {}

TracepointTable::~TracepointTable() = default;

const GuestReader& TracepointTable::original_text() const {
  return state_->text;
}

Result<void> TracepointTable::check(GuestVirt address, Policy policy) const {
  const auto bytes = TRY(state_->check(address, policy));
  const auto moved = disasm::relocate(bytes, address, address);
  if (!moved) return refuse(address, moved.error().message);
  return {};
}

Result<TracepointId> TracepointTable::add(GuestVirt address, Policy policy) {
  State& s = *state_;
  if (const auto id = s.index.find(address)) {
    if (s.points[*id].stage == Stage::Dropped) return refuse(address, "the guest changed its text");
    return TracepointId{*id};
  }
  const auto bytes = TRY(s.check(address, policy));
  // The size does not depend on the place: once to learn it, once for the place.
  const auto sized = disasm::relocate(bytes, address, address);
  if (!sized) return refuse(address, sized.error().message);
  const GuestVirt slot = TRY(s.shim.allocate_slot(sized->size()));
  const auto moved = disasm::relocate(bytes, address, slot);
  if (!moved) return refuse(address, moved.error().message);
  CHECK(moved->size() == sized->size());
  TRY(s.shim.write_slot(slot, *moved));
  TRY(s.shim.add_entry(address, slot));
  const auto id = static_cast<std::uint32_t>(s.points.size());
  s.points.emplace_back(address, bytes);
  s.slots.push_back({slot, static_cast<std::uint32_t>(moved->size()), address,
                     static_cast<std::uint8_t>(bytes.size())});
  s.index.insert(address, id);
  return TracepointId{id};
}

std::size_t TracepointTable::size() const {
  return state_->points.size();
}

std::span<const TracepointTable::Slot> TracepointTable::slots() const {
  return state_->slots;
}

Result<void> TracepointTable::arm(vmm::PausedMachine& machine) {
  State& s = *state_;
  s.live.forget();
  std::vector<vmm::CodeWrite> writes;
  std::vector<std::uint32_t> arming;
  for (std::uint32_t id = 0; id < s.points.size(); ++id) {
    Point& point = s.points[id];
    const Stage stage = point.stage;
    if (stage != Stage::Prepared && stage != Stage::Retired) continue;
    if (!s.is_unchanged(point)) {
      s.drop(point, s.changed);
      continue;
    }
    writes.push_back({point.address, std::to_integer<std::uint8_t>(kInt3)});
    arming.push_back(id);
  }
  for (const std::uint32_t id : arming) s.points[id].stage = Stage::Armed;
  s.by_address.insert(s.by_address.end(), arming.begin(), arming.end());
  std::sort(s.by_address.begin(), s.by_address.end(), [&s](std::uint32_t a, std::uint32_t b) {
    return s.points[a].address < s.points[b].address;
  });
  return machine.write_code(writes);
}

Result<void> TracepointTable::disarm(vmm::PausedMachine& machine) {
  State& s = *state_;
  const auto gone = drop_changed();
  s.changed.insert(s.changed.end(), gone.begin(), gone.end());
  std::vector<vmm::CodeWrite> writes;
  writes.reserve(s.by_address.size());
  for (const std::uint32_t id : s.by_address) {
    const Point& point = s.points[id];
    writes.push_back({point.address, std::to_integer<std::uint8_t>(point.original())});
  }
  auto written = machine.write_code(writes);
  std::erase_if(s.by_address, [&](std::uint32_t id) {
    Point& point = s.points[id];
    const bool restored = written || s.live_byte(point.address) != kInt3;
    if (restored) point.stage = Stage::Retired;
    return restored;
  });
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
    if (s.live_byte(point.address) == kInt3) return false;
    s.drop(point, gone);
    return true;
  });
  return gone;
}

}  // namespace ringside::providers
