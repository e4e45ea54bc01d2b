// In this file, top to bottom: VMCOREINFO's structures, reserved pages, mutexes, tasks, releases.
#include "vmm/linux/types/types_without_btf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {
namespace {

/// No structure that VMCOREINFO describes comes near it.
constexpr std::int64_t kMostOffset = 1 << 20;

struct DescribedMember {
  std::string_view name, type;  // of a plain type, or of a structure further up
};
struct DescribedStruct {
  std::string_view name;
  std::array<DescribedMember, 5> members;
};

/// kernel/vmcore_info.c and kernel/printk/printk.c, 5.10 and later; types by
/// kernel/printk/printk_ringbuffer.h and include/linux/mm_types.h.
constexpr DescribedStruct kDescribedStructs[] = {
    {"page", {{{"flags", "unsigned long"}}}},
    {"atomic_long_t", {{{"counter", "long"}}}},
    {"prb_data_blk_lpos", {{{"begin", "unsigned long"}, {"next", "unsigned long"}}}},
    {"prb_desc", {{{"state_var", "atomic_long_t"}, {"text_blk_lpos", "prb_data_blk_lpos"}}}},
    {"prb_data_ring", {{{"size_bits", "unsigned int"}, {"data", "unsigned long"}}}},
    {"prb_desc_ring",
     {{{"count_bits", "unsigned int"},
       {"descs", "unsigned long"},
       {"infos", "unsigned long"},
       {"head_id", "atomic_long_t"},
       {"tail_id", "atomic_long_t"}}}},
    {"printk_ringbuffer", {{{"desc_ring", "prb_desc_ring"}, {"text_data_ring", "prb_data_ring"}}}},
    {"printk_info",
     {{{"ts_nsec", "unsigned long"},
       {"text_len", "unsigned short"},
       {"caller_id", "unsigned int"}}}},
};

std::optional<TypeId> type_named(const TypeGraph& types, std::string_view name) {
  const auto plain = types.find(name);
  return plain ? plain : types.find(TypeKind::Struct, name);
}

/// Between text_len and caller_id are facility (8 bits), flags (5) and level (3).
void add_level(std::vector<Member>& members, const TypeGraph& types) {
  const auto place = [&](std::string_view name) -> std::optional<std::uint32_t> {
    const auto found = std::ranges::find(members, name, &Member::name);
    return found != members.end() ? std::optional(found->bit_offset) : std::nullopt;
  };
  const auto length = place("text_len"), caller = place("caller_id");
  const auto type = types.find("unsigned char");
  if (!type || !length || !caller || *caller != *length + 32) return;
  members.push_back({"level", *type, *caller - 3, 3});
}

void add_struct(const VmcoreInfo& info, const DescribedStruct& described, TypeGraph& types) {
  const auto size = info.size(described.name);
  if (!size || *size == 0 || *size > static_cast<std::uint64_t>(kMostOffset)) return;
  std::vector<Member> members;
  for (const DescribedMember& member : described.members) {
    if (member.name.empty()) break;
    const auto offset = info.offset(std::string(described.name) + "." + std::string(member.name));
    const auto type = type_named(types, member.type);
    if (!offset || *offset < 0 || *offset > kMostOffset || !type) continue;
    members.push_back({member.name, *type, static_cast<std::uint32_t>(*offset) * 8, 0});
  }
  if (described.name == "printk_info") add_level(members, types);
  std::ranges::stable_sort(members, {}, &Member::bit_offset);
  types.index(types.add_struct(TypeKind::Struct, described.name, *size, members));
}

/// PG_reserved: the pages of the kernel's text have no other of the flags, which are below the
/// bits for node and zone.
void add_reserved_flag(const SymbolTable& symbols, const GuestReader& kernel,
                       const VmcoreInfo& info, TypeGraph& types) {
  constexpr std::uint64_t kPages = 256, kFlags = 0xff'ffff;
  const auto page = types.find(TypeKind::Struct, "page");
  const auto flags = page ? types.find_member(*page, "flags") : std::nullopt;
  const Symbol* const base = symbols.find("vmemmap_base", "vmlinux");
  const Symbol* const text = symbols.find("_stext", "vmlinux");
  const Symbol* const end = symbols.find("_etext", "vmlinux");
  if (!flags || base == nullptr || text == nullptr || end == nullptr) return;
  const auto array = load<std::uint64_t>(kernel, base->address);
  const auto moved = info.number("phys_base");
  if (!array || !moved || end->address < text->address) return;
  const std::uint64_t physical =
      text->address.offset_from(arch::kKernelImage) + static_cast<std::uint64_t>(*moved);
  const std::uint64_t pages =
      std::min(end->address.offset_from(text->address) / arch::kPageSize, kPages);
  std::uint64_t common = 0;
  for (std::uint64_t n = 0; n < pages; ++n) {
    const std::uint64_t frame = physical / arch::kPageSize + n;
    const GuestVirt at =
        GuestVirt(*array).wrapping_add(frame * types.size_of(*page) + flags->bit_offset / 8);
    const auto word = load<std::uint64_t>(kernel, at);
    if (!word || (n != 0 && (*word & kFlags) != common)) return;
    common = *word & kFlags;
  }
  if (std::popcount(common) != 1) return;
  const std::array enumerators{Enumerator{"PG_reserved", std::countr_zero(common)}};
  types.index(types.add_enum("pageflags", sizeof(std::uint32_t), false, enumerators));
}

/// `owner` is the first member of struct mutex (include/linux/mutex.h, 4.10 and later), but for a
/// real-time kernel, whose mutexes are of another kind.
void add_mutex(const SymbolTable& symbols, TypeGraph& types) {
  const auto word = types.find("unsigned long");
  if (!word || is_realtime(symbols)) return;
  const std::array members{Member{"owner", *word, 0, 0}};
  types.index(types.add_struct(TypeKind::Struct, "mutex", 0, members));
}

constexpr std::size_t kTaskBytes = 16 << 10;  // of a task that are looked at; it has some 10 KiB
constexpr std::size_t kWord = sizeof(std::uint64_t);
using Comm = std::array<char, 16>;

/// struct task_struct (include/linux/sched.h) has one after the other: real_parent, parent,
/// children (a list of two words), sibling, group_leader. The idle task is its own parent and
/// leader.
constexpr std::size_t kParent = 1 * kWord, kChildren = 2 * kWord, kSibling = 4 * kWord,
                      kLeader = 6 * kWord;

std::optional<std::uint32_t> find_family(std::span<const std::byte> task, GuestVirt address) {
  const auto is_itself = [&](std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, task.data() + at, kWord);
    return word == address.raw();
  };
  std::optional<std::uint32_t> found;
  for (std::size_t at = 2 * kWord; at + kLeader + kWord <= task.size(); at += kWord) {
    if (!is_itself(at) || !is_itself(at + kParent) || !is_itself(at + kLeader)) continue;
    if (found) return std::nullopt;
    found = static_cast<std::uint32_t>(at);
  }
  return found;
}

/// The tasks of init and kthreadd, in this order; zeros where they are not there.
struct FirstTasks {
  GuestVirt init{0}, kthreadd{0};
};

/// Those children of the idle task whose pid and tgid, side by side at `pid`, are 1 and 2.
FirstTasks first_tasks(const GuestReader& kernel, GuestVirt idle, std::uint32_t family,
                       std::uint32_t pid) {
  constexpr unsigned kMostChildren = 64;
  FirstTasks found;
  const GuestVirt head = idle.wrapping_add(family + kChildren);
  auto node = load<std::uint64_t>(kernel, head);
  for (unsigned n = 0; n < kMostChildren && node && *node != head.raw(); ++n) {
    const GuestVirt task = GuestVirt(*node).wrapping_sub(family + kSibling);
    const auto parent = load<std::uint64_t>(kernel, task.wrapping_add(family));
    const auto ids = load<std::array<std::int32_t, 2>>(kernel, task.wrapping_add(pid));
    if (!parent || *parent != idle.raw() || !ids || (*ids)[0] != (*ids)[1]) return {};
    if ((*ids)[0] == 1) found.init = task;
    if ((*ids)[0] == 2) found.kthreadd = task;
    node = load<std::uint64_t>(kernel, GuestVirt(*node));
  }
  return found;
}

bool has_name(std::span<const std::byte> name, std::string_view wanted) {
  return std::memcmp(name.data(), wanted.data(), wanted.size()) == 0 &&
         name[wanted.size()] == std::byte{0};
}

/// Where the idle task is called "swapper/0" (or "swapper") and the other one "kthreadd".
std::optional<std::uint32_t> find_comm(std::span<const std::byte> idle, const GuestReader& kernel,
                                       GuestVirt kthreadd) {
  std::optional<std::uint32_t> found;
  for (std::size_t at = 0; at + sizeof(Comm) <= idle.size(); ++at) {
    const auto name = idle.subspan(at, sizeof(Comm));
    if (!has_name(name, "swapper/0") && !has_name(name, "swapper")) continue;
    const auto other = load<Comm>(kernel, kthreadd.wrapping_add(at));
    if (!other || !has_name(std::as_bytes(std::span(*other)), "kthreadd")) continue;
    if (found) return std::nullopt;
    found = static_cast<std::uint32_t>(at);
  }
  return found;
}

}  // namespace

void add_types_without_btf(const VmcoreInfo& info, const SymbolTable& symbols,
                           const GuestReader& kernel, TypeGraph& types) {
  for (const DescribedStruct& described : kDescribedStructs) add_struct(info, described, types);
  add_reserved_flag(symbols, kernel, info, types);
  add_mutex(symbols, types);
}

std::optional<TaskOffsets> find_task_offsets(const GuestReader& kernel, GuestVirt init_task) {
  std::vector<std::byte> idle(kTaskBytes);
  idle.resize(read_available(kernel, init_task, idle));
  const auto family = find_family(idle, init_task);
  if (!family) return std::nullopt;
  // Between tgid and real_parent lies the stack's canary where the kernel has such.
  for (const std::uint32_t before : {1 * kWord, 2 * kWord}) {
    const auto pid = static_cast<std::uint32_t>(*family - before);
    const auto own = load<std::uint64_t>(kernel, init_task.wrapping_add(pid));
    const FirstTasks first = first_tasks(kernel, init_task, *family, pid);
    if (!own || *own != 0 || first.init.raw() == 0 || first.kthreadd.raw() == 0) continue;
    const auto comm = find_comm(idle, kernel, first.kthreadd);
    if (!comm) return std::nullopt;
    return TaskOffsets{*comm, pid, pid + static_cast<std::uint32_t>(sizeof(std::int32_t)), *family};
  }
  return std::nullopt;
}

std::uint32_t system_running_of(std::string_view release) {
  constexpr std::uint32_t kBefore = 2, kNow = 3;
  constexpr unsigned kMajor = 5, kMinor = 16;  // of the first release with one more state
  const auto major = take_number<unsigned>(release);
  if (!major || !release.starts_with('.')) return kNow;
  release.remove_prefix(1);
  const unsigned minor = take_number<unsigned>(release).value_or(0);
  const bool is_old = *major < kMajor || (*major == kMajor && minor < kMinor);
  return is_old ? kBefore : kNow;
}

}  // namespace ringside::guest_linux
