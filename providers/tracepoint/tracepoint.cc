// In this file, top to bottom: a function's text as it was, where an int3 may stand, making a
// tracepoint, arming and disarming, watching.
#include "providers/tracepoint/tracepoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <string_view>

#include "disasm/decoder.h"
#include "providers/tracepoint/address_index.h"
#include "providers/tracepoint/function_sites.h"
#include "providers/tracepoint/original_text.h"
#include "providers/tracepoint/text_sweep.h"
#include "providers/tracepoint/unready_text.h"
#include "vmm/base/check.h"

namespace ringside::providers {
namespace {

using guest_linux::Kernel;
using guest_linux::Symbol;

constexpr std::byte kInt3{0xcc};
using disasm::kLongestInstruction;

enum class Stage : std::uint8_t {
  Prepared,  // slot and table entry are there, the text is untouched
  Armed,
  Retired,  // our byte is gone again; a trap that began before is still known
  Dropped,  // the guest changed the byte under us
};

struct Point {
  Point(GuestVirt at, std::span<const std::byte> bytes, std::uint32_t within)
      : address(at), function(within), length(static_cast<std::uint8_t>(bytes.size())) {
    CHECK(!bytes.empty() && bytes.size() <= instruction.size());
    std::copy(bytes.begin(), bytes.end(), instruction.begin());
  }
  std::byte original() const { return instruction.front(); }

  GuestVirt address;
  std::uint32_t function;                                    // index of its FunctionText
  std::array<std::byte, kLongestInstruction> instruction{};  // that the slot was made from
  std::uint8_t length;
  std::atomic<Stage> stage = Stage::Prepared;  // read by the fire thread
};

tl::unexpected<Error> refuse(GuestVirt address, std::string_view why) {
  return fail(ErrorCode::Unsupported,
              fmt::format("no probe can stand at {:#x}: {}", address.raw(), why));
}

/// A function's text when its sites were found. They are good for no other: another module may lie
/// there by now.
struct FunctionText {
  GuestVirt begin;
  std::uint64_t size = 0;
  std::optional<FtraceSite> ftrace;
  std::size_t hash = 0;  // of the original text, without what the kernel rewrites all the time
};

/// The last instruction boundary that a sweep proved, so that consecutive checks in one function
/// do not start over.
struct Boundary {
  GuestVirt function, at;
};

}  // namespace

struct TracepointTable::State final : OriginalText::Ours {
  State(vmm::Machine& of, vmm::Shim& with, Kernel& knows)
      : shim(with), kernel(knows), live(of.memory(), knows.table()), text(live, *this, knows) {}

  vmm::Shim& shim;
  const Kernel& kernel;
  std::vector<TracepointTable::Slot> slots;
  std::deque<Point> points;             // by TracepointId
  std::vector<FunctionText> functions;  // of the points; one function's follow each other as a rule
  AddressIndex index;
  vmm::PageTableReader live;
  OriginalText text;
  std::vector<std::uint32_t> by_address;  // armed points, in the order of their addresses
  std::vector<GuestVirt> changed;         // found by arm() and disarm(), not yet reported
  std::optional<GuestVirt> farewell;
  mutable Boundary boundary;
  mutable std::vector<std::byte> buffer;
  mutable std::optional<UnreadyText> unready;  // found when first asked for

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
  Result<void> check_ranges(GuestVirt address, const Symbol& function, Policy policy) const;
  Result<std::span<const std::byte>> instruction_at(GuestVirt address, const Symbol& function,
                                                    GuestVirt begin) const;
  Result<void> check_ready(GuestVirt address, const Symbol& function) const;
  Result<void> check_patched(GuestVirt address, std::size_t length) const;
  Result<std::span<const std::byte>> check(GuestVirt address, Policy policy) const;

  std::optional<std::size_t> hash_of(const FunctionText& function) const;
  Result<std::uint32_t> function_at(GuestVirt address);
  std::vector<bool> unchanged_functions() const;
};

/// Empty when not all of it can be read.
std::optional<std::size_t> TracepointTable::State::hash_of(const FunctionText& function) const {
  buffer.resize(function.size);
  if (!text.read(function.begin, buffer)) return std::nullopt;
  const auto leave_out = [&](GuestVirt from, std::uint64_t length) {
    for (std::uint64_t i = 0; i < length; ++i) {
      const std::uint64_t index = from.raw() + i - function.begin.raw();
      if (index < buffer.size()) buffer[index] = std::byte{0};
    }
  };
  if (function.ftrace) leave_out(function.ftrace->begin, kFtraceBytes);
  for (const auto& site : Kernel::sites_from(kernel.patched_sites(), function.begin)) {
    if (site.address.raw() - function.begin.raw() >= buffer.size()) break;
    leave_out(site.address, site.length);
  }
  // SAFETY: char may alias any bytes.
  const std::string_view bytes(reinterpret_cast<const char*>(buffer.data()), buffer.size());
  return std::hash<std::string_view>()(bytes);
}

/// The index of the text of the function that covers `address`, which check() has found good.
Result<std::uint32_t> TracepointTable::State::function_at(GuestVirt address) {
  const Symbol* function = kernel.symbols().at(address);
  CHECK(function != nullptr);
  if (functions.empty() || functions.back().begin != function->address) {
    FunctionText fresh{function->address, function->size,
                       ftrace_site(text, *function, &kernel.symbols()), 0};
    const auto hash = hash_of(fresh);
    if (!hash) return refuse(address, "its text cannot be read");
    fresh.hash = *hash;
    functions.push_back(fresh);
  }
  return static_cast<std::uint32_t>(functions.size() - 1);
}

std::vector<bool> TracepointTable::State::unchanged_functions() const {
  std::vector<bool> unchanged;
  unchanged.reserve(functions.size());
  for (const FunctionText& function : functions) {
    unchanged.push_back(hash_of(function) == function.hash);
  }
  return unchanged;
}

Result<void> TracepointTable::State::check_ranges(GuestVirt address, const Symbol& function,
                                                  Policy policy) const {
  const auto& symbols = kernel.symbols();
  for (const auto& range : kernel.forbidden_text()) {
    if (!range.contains(address)) continue;
    const Symbol* start = symbols.find("__noinstr_text_start");
    const Symbol* end = symbols.find("__noinstr_text_end");
    const bool noinstr =
        start != nullptr && end != nullptr && address >= start->address && address < end->address;
    if (policy == Policy::AllowNoinstr && noinstr) continue;
    if (function.module != 0) {
      return refuse(address, "its module's tables of what the kernel patches cannot be read");
    }
    return refuse(address, "the kernel cannot take a breakpoint in this part of its text");
  }
  return {};
}

Result<void> TracepointTable::State::check_ready(GuestVirt address, const Symbol& function) const {
  if (!unready) unready = UnreadyText::find(text, kernel);
  const std::string_view reason = unready->reason(function.address);
  if (!reason.empty()) return refuse(address, reason);
  return {};
}

/// The bytes of the instruction at `address`, if the function's instructions lead there from
/// `begin` on. The span is good until the next call.
Result<std::span<const std::byte>> TracepointTable::State::instruction_at(GuestVirt address,
                                                                          const Symbol& function,
                                                                          GuestVirt begin) const {
  if (function.size == 0 || function.size > kMaxFunction) {
    return refuse(address, "its function has no known end");
  }
  const bool known = boundary.function == function.address && boundary.at <= address;
  const GuestVirt from = known ? boundary.at : begin;
  const std::uint64_t to = function.address.raw() + function.size;  // the symbol covers address
  buffer.resize(std::min<std::uint64_t>(to, address.raw() + kLongestInstruction) - from.raw());
  if (!text.read(from, buffer)) return refuse(address, "its text cannot be read");

  TextSweep sweep(buffer, from, TextSweep::Reach::NotToTheEnd);
  while (sweep.here() < address) {
    const auto in = sweep.next();
    if (!in) return refuse(address, in.error().message);
  }
  if (sweep.here() != address) return refuse(address, "it lies inside an instruction");
  const auto in = sweep.next();
  if (!in) return refuse(address, in.error().message);
  boundary = {function.address, address};
  return std::span<const std::byte>(buffer).subspan(address.raw() - from.raw(), in->length);
}

/// Whole instructions move to the slot, so no byte of them may be one that the guest patches.
Result<void> TracepointTable::State::check_patched(GuestVirt address, std::size_t length) const {
  const Kernel::PatchedSite* site = Kernel::site_in(kernel.patched_sites(), address, length);
  if (site == nullptr) return {};
  return refuse(address, fmt::format("{}, which the kernel handles by its address", site->what));
}

Result<std::span<const std::byte>> TracepointTable::State::check(GuestVirt address,
                                                                 Policy policy) const {
  const Symbol* function = kernel.symbols().at(address);
  // Kernels list data as text, too: 25,270 symbols of Debian's 7.2 lie behind its end.
  const auto modules = kernel.symbols().modules();
  if (function == nullptr || !function->is_text() ||
      !modules[function->module].has_text_at(address)) {
    return refuse(address, "it is not in the kernel's text");
  }
  TRY(check_ranges(address, *function, policy));
  if (!text.trouble()) return refuse(address, text.trouble().error().message);
  // At its very beginning the function that gives up the table still has it.
  if (address != farewell) TRY(check_ready(address, *function));
  // Sweeps begin behind the ftrace site: the guest may be rewriting it.
  const auto ftrace = ftrace_site(text, *function, &kernel.symbols());
  if (ftrace && address >= ftrace->begin && address < ftrace->end) {
    return refuse(address, "the guest's own ftrace patches it");
  }
  const bool behind = ftrace && address >= ftrace->end;
  const GuestVirt begin = behind ? ftrace->end : function->address;
  const auto bytes = TRY(instruction_at(address, *function, begin));
  TRY(check_patched(address, bytes.size()));
  if (text.has_kprobe(address, bytes.size())) {
    return refuse(address, "a kprobe of the guest's own stands there, or right before it");
  }
  return bytes;
}

TracepointTable::TracepointTable(vmm::Machine& machine, vmm::Shim& shim, Kernel& kernel)
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
  const auto found = TRY(s.check(address, policy));
  const std::vector<std::byte> bytes(found.begin(), found.end());
  const std::uint32_t function = TRY(s.function_at(address));
  // The sizes do not depend on the place: once to learn them, once for the place.
  const auto sized = disasm::relocate(bytes, address, address);
  if (!sized) return refuse(address, sized.error().message);
  std::vector<std::byte> code;
  if (s.farewell == address) code = s.shim.farewell(address);
  const GuestVirt slot = TRY(s.shim.allocate_slot(code.size() + sized->size()));
  if (!code.empty()) code = s.shim.farewell(slot);
  const GuestVirt begin(slot.raw() + code.size());
  const auto moved = disasm::relocate(bytes, address, begin);
  if (!moved) return refuse(address, moved.error().message);
  CHECK(moved->size() == sized->size());
  code.insert(code.end(), moved->begin(), moved->end());
  TRY(s.shim.write_slot(slot, code));
  TRY(s.shim.add_entry(address, slot));
  const auto id = static_cast<std::uint32_t>(s.points.size());
  s.points.emplace_back(address, bytes, function);
  s.slots.push_back({begin, static_cast<std::uint32_t>(moved->size()), address,
                     static_cast<std::uint8_t>(bytes.size())});
  s.index.insert(address, id);
  return TracepointId{id};
}

void TracepointTable::set_farewell(GuestVirt address) {
  state_->farewell = address;
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
  const std::vector<bool> unchanged = s.unchanged_functions();
  std::vector<vmm::CodeWrite> writes;
  std::vector<std::uint32_t> arming;
  for (std::uint32_t id = 0; id < s.points.size(); ++id) {
    Point& point = s.points[id];
    const Stage stage = point.stage;
    if (stage != Stage::Prepared && stage != Stage::Retired) continue;
    if (!unchanged[point.function] || !s.is_unchanged(point) ||
        s.text.has_kprobe(point.address, point.length)) {
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
  TRY(machine.write_code(writes));
  for (const std::uint32_t id : arming) {
    if (s.live_byte(s.points[id].address) == kInt3) continue;
    return fail(ErrorCode::MachineGone,
                fmt::format("the machine says that it wrote a breakpoint at {:#x}, and there is "
                            "none; start it anew, and do not trust it",
                            s.points[id].address.raw()));
  }
  return {};
}

bool TracepointTable::is_text_changing(vmm::PausedMachine&) const {
  state_->live.forget();
  return state_->text.is_changing();
}

void TracepointTable::look_again() {
  state_->text.look_again();
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
    writes.push_back({point.address, std::to_integer<std::uint8_t>(point.original())});
  }
  auto written = machine.write_code(writes);
  // By what lies there, not by the machine's word: the shim has to stay for any byte that is left.
  std::erase_if(s.by_address, [&](std::uint32_t id) {
    Point& point = s.points[id];
    const bool restored = s.live_byte(point.address) != kInt3;
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
    if (s.live_byte(point.address) == kInt3) return false;
    s.drop(point, gone);
    return true;
  });
  return gone;
}

}  // namespace ringside::providers
