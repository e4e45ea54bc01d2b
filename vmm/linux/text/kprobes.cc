// In this file, top to bottom: one kprobe's bytes, offsets, the walk, the locks, the
// blacklist.
#include "vmm/linux/text/kprobes.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "vmm/arch/arch.h"
#include "vmm/block_reader.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {
namespace {

constexpr std::byte kInt3 = arch::kBreakpoint, kJump = arch::kNearJump;
constexpr std::uint64_t kLists = 64;          // KPROBE_TABLE_SIZE
constexpr std::size_t kMaxKprobes = 1 << 17;  // more than all functions there are
constexpr std::uint32_t kGone = 1;            // KPROBE_FLAG_GONE: its module was unloaded
constexpr std::uint32_t kOptimized = 4;       // KPROBE_FLAG_OPTIMIZED
constexpr std::uint32_t kOnFtrace = 8;        // KPROBE_FLAG_FTRACE: changes no text of its own

tl::unexpected<Error> damaged() {
  return fail(ErrorCode::Invalid,
              "the guest's list of kprobes cannot be read: it is damaged or changing, try again");
}

template <class T>
std::array<std::byte, sizeof(T)> bytes_of(T value) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

KprobeBytes Kprobe::original(const KprobeBytes& now) const {
  KprobeBytes bytes = now;
  if (now[0] != kInt3 && now[0] != kJump) return bytes;  // not there yet, or not any more
  const bool jumps = jump && std::equal(jump->distance.begin(), jump->distance.end(), &now[1]);
  if (now[0] == kJump && !jumps) return bytes;  // the kernel's own jump
  bytes[0] = opcode;
  // While the jump is being written or taken out, it is a breakpoint with the jump's distance.
  if (jumps) std::copy(jump->original.begin(), jump->original.end(), &bytes[1]);
  return bytes;
}

std::span<const Kprobe> kprobes_from(std::span<const Kprobe> kprobes, GuestVirt at) {
  const GuestVirt lowest = at.wrapping_sub(std::min<std::uint64_t>(at.raw(), kKprobeBytes - 1));
  return {std::ranges::lower_bound(kprobes, lowest, {}, &Kprobe::address), kprobes.end()};
}

bool has_kprobe(std::span<const Kprobe> kprobes, GuestVirt at, std::size_t size) {
  const auto reaching = kprobes_from(kprobes, at);
  // They begin before `at`, where a kprobe's own bytes still reach into the range.
  return !reaching.empty() &&
         (reaching.front().address < at || reaching.front().address.is_in(at, size));
}

KprobeTable::KprobeTable(const SymbolTable& symbols, const TypeGraph& types)
    : layout_(layout_of(types)) {
  const Symbol* table = symbols.find("kprobe_table", "vmlinux");
  if (table != nullptr) table_ = table->address;
  const auto owner = mutex_owner_offset(types);
  const auto owner_of = [&](std::string_view name) -> std::optional<GuestVirt> {
    const Symbol* lock = symbols.find(name, "vmlinux");
    if (lock == nullptr || !owner) return std::nullopt;
    return lock->address.wrapping_add(*owner);
  };
  text_owner_ = owner_of("text_mutex");
  kprobe_owner_ = owner_of("kprobe_mutex");
}

std::optional<KprobeTable::Layout> KprobeTable::layout_of(const TypeGraph& types) {
  const auto hlist = offset_of(types, "kprobe", {"hlist"});
  const auto addr = offset_of(types, "kprobe", {"addr"});
  const auto opcode = offset_of(types, "kprobe", {"opcode"});
  const auto copy = offset_of(types, "kprobe", {"ainsn", "insn"});
  const auto flags = offset_of(types, "kprobe", {"flags"});
  if (!hlist || !addr || !opcode || !copy || !flags) return std::nullopt;
  Layout layout{*hlist, *addr, *opcode, *copy, *flags, {}};
  const auto kprobe = offset_of(types, "optimized_kprobe", {"kp"});
  const auto copied = offset_of(types, "optimized_kprobe", {"optinsn", "copied_insn"});
  const auto target = offset_of(types, "optimized_kprobe", {"optinsn", "insn"});
  if (kprobe && copied && target) layout.optimized = Layout::Optimized{*kprobe, *copied, *target};
  return layout;
}

Result<std::vector<Kprobe>> KprobeTable::read(const GuestReader& kernel) const {
  std::vector<Kprobe> found;
  if (!table_) return found;
  std::array<std::uint64_t, kLists> heads;
  if (!kernel.read(*table_, std::as_writable_bytes(std::span(heads)))) return damaged();
  if (std::ranges::all_of(heads, [](std::uint64_t head) { return head == 0; })) return found;
  if (!layout_) {
    return fail(ErrorCode::Unsupported,
                "the guest has set kprobes, and its kernel's types do not tell where: see --types");
  }
  // Of all lists: 64 that lead to one long list would take 64 times as long.
  std::unordered_set<std::uint64_t> seen;
  for (const std::uint64_t head : heads) TRY(walk(kernel, GuestVirt(head), seen, found));
  std::sort(found.begin(), found.end(),
            [](const Kprobe& a, const Kprobe& b) { return a.address < b.address; });
  return found;
}

Result<void> KprobeTable::walk(const GuestReader& kernel, GuestVirt head,
                               std::unordered_set<std::uint64_t>& seen,
                               std::vector<Kprobe>& found) const {
  for (GuestVirt node = head; node.raw() != 0;) {
    if (seen.size() >= kMaxKprobes || !seen.insert(node.raw()).second) return damaged();
    TRY(add(kernel, node.wrapping_sub(layout_->hlist), found));
    const auto next = ringside::load<std::uint64_t>(kernel, node);
    if (!next) return damaged();
    node = GuestVirt(*next);
  }
  return {};
}

Result<void> KprobeTable::add(const GuestReader& kernel, GuestVirt kprobe,
                              std::vector<Kprobe>& found) const {
  const auto flags = load_field<std::uint32_t>(kernel, kprobe, layout_->flags);
  const auto address = load_field<std::uint64_t>(kernel, kprobe, layout_->addr);
  const auto opcode = load_field<std::byte>(kernel, kprobe, layout_->opcode);
  const auto copy = load_field<std::uint64_t>(kernel, kprobe, layout_->copy);
  if (!flags || !address || !opcode || !copy) return damaged();
  if ((*flags & (kGone | kOnFtrace)) != 0) return {};
  // The copy that the kernel executes must agree, or these are no kprobes as we know them.
  const auto first = ringside::load<std::byte>(kernel, GuestVirt(*copy));
  if (!first || *first != *opcode || *opcode == kInt3) return damaged();

  Kprobe& probe = found.emplace_back(Kprobe{GuestVirt(*address), *opcode, {}});
  if ((*flags & kOptimized) == 0) return {};
  if (!layout_->optimized) return damaged();
  const GuestVirt whole = kprobe.wrapping_sub(layout_->optimized->kprobe);
  const auto original =
      load_field<std::array<std::byte, 4>>(kernel, whole, layout_->optimized->copied);
  const auto target = load_field<std::uint64_t>(kernel, whole, layout_->optimized->jump_target);
  if (!original || !target) return damaged();
  const auto distance = static_cast<std::uint32_t>(*target - (*address + kKprobeBytes));
  probe.jump = Kprobe::Jump{bytes_of(distance), *original};
  return {};
}

bool KprobeTable::is_changing(const GuestReader& kernel, Changes changes) const {
  const auto is_held = [&](std::optional<GuestVirt> at) {
    if (!at) return false;
    const auto owner = ringside::load<std::uint64_t>(kernel, *at);
    return !owner || (*owner & ~kMutexFlags) != 0;
  };
  return (changes == Changes::OfText && is_held(text_owner_)) || is_held(kprobe_owner_);
}

namespace {

constexpr std::size_t kMaxEntries = 1 << 16;  // kernels and their modules have some 1,000

tl::unexpected<Error> unreadable_blacklist() {
  return fail(ErrorCode::Invalid,
              "the guest's list of functions that may have no kprobe cannot be read");
}

}  // namespace

Result<std::vector<Kernel::AddressRange>> read_kprobe_blacklist(const GuestReader& kernel,
                                                                const SymbolTable& symbols,
                                                                const TypeGraph& types) {
  const Symbol* const head = symbols.find("kprobe_blacklist", "vmlinux");
  const auto list = offset_of(types, "kprobe_blacklist_entry", {"list"});
  const auto start = offset_of(types, "kprobe_blacklist_entry", {"start_addr"});
  const auto end = offset_of(types, "kprobe_blacklist_entry", {"end_addr"});
  if (head == nullptr || !list || !start || !end) {
    return fail(ErrorCode::Unsupported,
                "the kernel does not say which functions may have no kprobe (CONFIG_KPROBES)");
  }
  const vmm::BlockReader blocks(kernel);
  std::vector<Kernel::AddressRange> ranges;
  const auto take = [&](GuestVirt node) {
    const GuestVirt entry = node.wrapping_sub(*list);
    const auto from = load_field<std::uint64_t>(blocks, entry, *start);
    const auto to = load_field<std::uint64_t>(blocks, entry, *end);
    if (!from || !to || *to < *from) return false;
    ranges.push_back({GuestVirt(*from), GuestVirt(*to)});
    return true;
  };
  const ListEnd end_of_list = walk_list(blocks, head->address, kMaxEntries, take);
  // The kernel itself is always on it: an empty list is no list.
  if (end_of_list != ListEnd::Whole || ranges.empty()) return unreadable_blacklist();
  std::ranges::sort(ranges, {}, &Kernel::AddressRange::begin);
  return ranges;
}

}  // namespace ringside::guest_linux
