#include "vmm/linux/text/kprobe_blacklist.h"

#include <algorithm>

#include "vmm/block_reader.h"
#include "vmm/linux/kernel_list.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {
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
