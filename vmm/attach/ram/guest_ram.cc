// In this file, top to bottom: candidates, where the kernel's image lies, layouts that are
// possible, the search.
#include "vmm/attach/ram/guest_ram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/attach/ram/ram_proof.h"
#include "vmm/linux/kernel_memory.h"
#include "vmm/linux/vmcoreinfo.h"

namespace ringside::vmm {
namespace {

using arch::kPageSize;
using guest_linux::KernelMemory;
using guest_linux::VmcoreInfo;

constexpr std::uint64_t kSmallest = 8 << 20;
constexpr std::uint64_t kHighestOfProcess = std::uint64_t{1} << 56;  // of a process's addresses
constexpr std::size_t kMostAnchors = 32;
/// The firmware may leave the kernel less than all of the memory below 4 GiB.
constexpr std::uint64_t kFirmwareKeeps = 64 << 20;

tl::unexpected<Error> not_found(std::string_view what) {
  return fail(ErrorCode::Unsupported, std::string(what));
}

bool is_ram_like(const MemoryMapping& mapping) {
  const bool special = mapping.name == "[heap]" || mapping.name.starts_with("[stack") ||
                       mapping.name.starts_with("anon_inode:");
  return mapping.readable && mapping.writable && !special && mapping.begin % kPageSize == 0 &&
         mapping.end % kPageSize == 0 && mapping.end <= kHighestOfProcess;
}

/// Whether `next` goes on where `first` ends, with the same memory.
bool continues(const MemoryMapping& first, const MemoryMapping& next) {
  if (first.end != next.begin || first.shared != next.shared || first.inode != next.inode ||
      first.device != next.device) {
    return false;
  }
  return first.inode == 0 || first.offset + first.size() == next.offset;
}

/// A candidate as if guest-physical `shift` were its first byte; what would lie below 0 is left
/// out. Empty when nothing is left.
std::optional<RamRange> place_whole(const RamCandidate& candidate, std::size_t index,
                                    std::int64_t shift) {
  const std::uint64_t cut = shift < 0 ? static_cast<std::uint64_t>(-shift) : 0;
  if (cut >= candidate.size()) return std::nullopt;
  const std::uint64_t base = shift < 0 ? 0 : static_cast<std::uint64_t>(shift);
  return RamRange{GuestPhys(base), candidate.size() - cut, index, cut};
}

/// Where the kernel's image may lie: in a candidate whose first byte would be that one of the
/// guest's.
struct ImageCandidate {
  std::size_t candidate = 0;
  std::int64_t shift = 0;
};

/// Every page of the candidates that holds, where init_uts_ns.name lies in its page, a Linux of
/// this release.
class AnchorSearch {
 public:
  AnchorSearch(const std::vector<RamCandidate>& candidates, const VmcoreInfo& info, GuestVirt name,
               GuestPhys at)
      : candidates_(&candidates),
        release_(info.release()),
        in_page_(name.raw() % kPageSize),
        at_(at) {}

  std::vector<ImageCandidate> run() {
    for (std::size_t i = 0; i < candidates_->size(); ++i) search(i);
    return std::move(found_);
  }

 private:
  static constexpr std::size_t kBatch = 64;
  using Name = std::array<char, 3 * VmcoreInfo::kUtsField>;

  void search(std::size_t index) {
    const RamCandidate& candidate = (*candidates_)[index];
    for (const ByteExtent& extent :
         candidate.bytes->extents({candidate.offset, candidate.size()})) {
      const std::uint64_t end = extent.offset - candidate.offset + extent.size;
      std::uint64_t page = extent.offset - candidate.offset;
      while (page < end && found_.size() < kMostAnchors) page = look(index, page, end);
    }
  }

  /// Looks at the next pages; where to go on.
  std::uint64_t look(std::size_t index, std::uint64_t page, std::uint64_t end) {
    const RamCandidate& candidate = (*candidates_)[index];
    std::array<Name, kBatch> names;
    std::array<CopyPart, kBatch> parts;
    std::size_t count = 0;
    for (; count < kBatch && page + in_page_ + sizeof(Name) <= end; page += kPageSize) {
      parts[count] = {candidate.offset + page + in_page_,
                      std::as_writable_bytes(std::span(names[count]))};
      ++count;
    }
    if (count == 0) return end;
    const std::span wanted = std::span(parts).first(count);
    const bool all = candidate.bytes->read(wanted);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span one = wanted.subspan(i, 1);
      if (!all && !candidate.bytes->read(one)) continue;
      if (matches(names[i])) add(index, one.front().offset - candidate.offset);
    }
    return page;
  }

  bool matches(const Name& name) const {
    const std::string_view text(name.data(), name.size());
    const std::string_view release = text.substr(2 * VmcoreInfo::kUtsField);
    return text.starts_with(std::string_view("Linux\0", 6)) &&
           release.substr(0, release.find('\0')) == release_;
  }

  void add(std::size_t index, std::uint64_t offset) {
    const auto shift = static_cast<std::int64_t>(at_.raw()) - static_cast<std::int64_t>(offset);
    if (found_.size() < kMostAnchors) found_.push_back({index, shift});
  }

  const std::vector<RamCandidate>* candidates_;
  const std::string release_;
  const std::uint64_t in_page_;
  const GuestPhys at_;
  std::vector<ImageCandidate> found_;
};

using Layout = std::vector<RamRange>;

/// RAM that is these two one after the other, as two NUMA nodes have it: from 0 on, and as much as
/// the kernel counts above 4 GiB from there on. Empty when that does not come out even, or the
/// image does not lie in it where it was found.
std::optional<Layout> lay_out_nodes(const std::vector<RamCandidate>& candidates,
                                    const ImageCandidate& image, std::array<std::size_t, 2> nodes,
                                    std::uint64_t end) {
  const std::uint64_t total = candidates[nodes[0]].size() + candidates[nodes[1]].size();
  const std::uint64_t high = end > k4GiB ? end - k4GiB : 0;
  const std::uint64_t low = total - std::min(total, high);
  if (low == 0 || low > k4GiB) return std::nullopt;
  if (high == 0 && (low < end || low - end > kFirmwareKeeps)) return std::nullopt;
  Layout layout;
  bool fits = false;
  std::uint64_t line = 0;  // bytes of RAM so far
  for (const std::size_t node : nodes) {
    for (std::uint64_t start = 0; start < candidates[node].size();) {
      const std::uint64_t base = line < low ? line : k4GiB + (line - low);
      const std::uint64_t left = candidates[node].size() - start;
      const std::uint64_t size = line < low ? std::min(left, low - line) : left;
      layout.push_back({GuestPhys(base), size, node, start});
      fits = fits ||
             (node == image.candidate &&
              static_cast<std::int64_t>(base) - static_cast<std::int64_t>(start) == image.shift);
      start += size;
      line += size;
    }
  }
  return fits ? std::optional(layout) : std::nullopt;
}

/// Layouts in which the kernel's image lies where it was found, and which hold as much as the
/// kernel says that there is.
std::vector<Layout> possible_layouts(const std::vector<RamCandidate>& candidates,
                                     const ImageCandidate& image, std::uint64_t end) {
  std::vector<Layout> layouts;
  const RamCandidate& own = candidates[image.candidate];
  auto whole = place_whole(own, image.candidate, image.shift);
  if (!whole) return layouts;
  const auto others = [&](const std::function<void(std::size_t, const RamCandidate&)>& each) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (i != image.candidate) each(i, candidates[i]);
    }
  };
  const auto own_end = whole->base.checked_add(whole->size);
  if (!own_end) return layouts;
  const auto add_nodes = [&](std::size_t i, const RamCandidate&) {
    for (const auto& nodes : {std::array{image.candidate, i}, std::array{i, image.candidate}}) {
      if (auto layout = lay_out_nodes(candidates, image, nodes, end)) {
        layouts.push_back(std::move(*layout));
      }
    }
  };
  if (end <= k4GiB) {
    if (whole->base.raw() >= end) return layouts;
    if (own_end->raw() >= end && whole->base.raw() == 0) {
      whole->size = end - whole->base.raw();
      return {{*whole}};
    }
    others(add_nodes);
    return layouts;
  }
  const std::uint64_t high = end - k4GiB;
  if (own.size() > high && own.size() - high <= k4GiB) {
    const std::uint64_t low = own.size() - high;
    if (image.shift == 0 || image.shift == static_cast<std::int64_t>(k4GiB - low)) {
      layouts.push_back({{GuestPhys(0), low, image.candidate, 0},
                         {GuestPhys(k4GiB), high, image.candidate, low}});
    }
  }
  others([&](std::size_t i, const RamCandidate& other) {
    const std::uint64_t distance = other.mapping.begin - own.mapping.begin;  // may wrap
    const bool same_line = distance + static_cast<std::uint64_t>(image.shift) == k4GiB;
    if (own_end->raw() <= k4GiB && (other.size() == high || (same_line && other.size() >= high))) {
      layouts.push_back({*whole, {GuestPhys(k4GiB), high, i, 0}});
    }
    if (whole->base == GuestPhys(k4GiB) && whole->size >= high && other.size() <= k4GiB) {
      layouts.push_back({{GuestPhys(0), other.size(), i, 0},
                         {GuestPhys(k4GiB), high, whole->candidate, whole->start}});
    }
  });
  others(add_nodes);
  return layouts;
}

/// The search for one kernel.
class RamSearch {
 public:
  RamSearch(const std::vector<RamCandidate>& candidates, const VmcoreInfo& info)
      : candidates_(&candidates), info_(&info) {}

  Result<GuestRam> run() {
    if (info_->number("sme_mask").value_or(0) != 0) {
      return not_found("its guest encrypts its memory (SEV or SME)");
    }
    // Most layouts begin with the guest's first byte.
    for (std::size_t i = 0; i < candidates_->size(); ++i) {
      if (auto found = try_image({i, 0})) return std::move(*found);
    }
    for (const ImageCandidate& image : anchors()) {
      if (auto found = try_image(image)) return std::move(*found);
    }
    if (failure_) return tl::make_unexpected(*failure_);
    return not_found("it holds a description of a Linux whose page tables say something else");
  }

 private:
  std::vector<ImageCandidate> anchors() const {
    const GuestVirt name = info_->names();
    const auto at = KernelMemory::image_address(*info_, name);
    if (!at) return {};
    return AnchorSearch(*candidates_, *info_, name, *at).run();
  }

  std::optional<GuestRam> try_image(const ImageCandidate& image) {
    const auto whole = place_whole((*candidates_)[image.candidate], image.candidate, image.shift);
    if (!whole) return std::nullopt;
    const GuestMemory trial = memory_of({*whole}, *candidates_);
    const auto kernel = KernelMemory::bind(trial, *info_);
    if (!kernel) return std::nullopt;
    auto found = lay_out(image, *kernel);
    if (found) return std::move(*found);
    // Other places that look like a kernel's are most often old copies, so the first one counts.
    if (!failure_) failure_ = std::move(found).error();
    return std::nullopt;
  }

  Result<GuestRam> lay_out(const ImageCandidate& image, const KernelMemory& trial) {
    const KernelOutline outline = TRY(read_outline(trial));
    Error failure{ErrorCode::Unsupported,
                  fmt::format("where its guest's memory lies cannot be proven: no memory of the "
                              "process fits {} MiB of it",
                              outline.end >> 20)};
    for (Layout& layout : possible_layouts(*candidates_, image, outline.end)) {
      const GuestMemory memory = memory_of(layout, *candidates_);
      const auto kernel = KernelMemory::bind(memory, *info_);
      if (!kernel) continue;
      auto proven = prove_ram(memory, *kernel, outline);
      if (proven) {
        return GuestRam{
            std::move(layout), std::string(info_->release()), outline.end / kPageSize,
            KernelMemory::image_address(*info_, outline.max_pfn).value_or(GuestPhys(UINT64_MAX))};
      }
      failure = std::move(proven).error();
    }
    return tl::make_unexpected(std::move(failure));
  }

  const std::vector<RamCandidate>* candidates_;
  const VmcoreInfo* info_;
  std::optional<Error> failure_;
};

}  // namespace

std::vector<MemoryMapping> ram_candidates(const std::vector<MemoryMapping>& mappings) {
  std::vector<MemoryMapping> found;
  std::vector<MemoryMapping> run;  // neighbours of one kind
  // RAM may be all of them, or one with a stranger as its neighbour.
  const auto take_run = [&] {
    if (run.size() > 1) found.insert(found.end(), run.begin(), run.end());
    if (!run.empty()) {
      run.front().end = run.back().end;
      found.push_back(std::move(run.front()));
    }
    run.clear();
  };
  for (const MemoryMapping& mapping : mappings) {
    if (!is_ram_like(mapping)) continue;
    if (!run.empty() && !continues(run.back(), mapping)) take_run();
    run.push_back(mapping);
  }
  take_run();
  std::erase_if(found, [](const MemoryMapping& each) { return each.size() < kSmallest; });
  std::ranges::stable_sort(found, std::greater<>(), &MemoryMapping::size);
  if (found.size() > kMostCandidates) found.resize(kMostCandidates);
  return found;
}

GuestMemory memory_of(const std::vector<RamRange>& ranges,
                      const std::vector<RamCandidate>& candidates) {
  std::vector<GuestMemory::CopiedRegion> regions;
  for (const RamRange& range : ranges) {
    const RamCandidate& candidate = candidates[range.candidate];
    regions.push_back({range.base, range.size, candidate.bytes, candidate.offset + range.start});
  }
  return GuestMemory::by_copies(regions);
}

Result<GuestRam> find_guest_ram(const std::vector<RamCandidate>& candidates) {
  // Not guest-physical yet: each candidate at its address in the process, which is as good for
  // finding what lies at the start of some page.
  std::vector<GuestMemory::CopiedRegion> regions;
  regions.reserve(candidates.size());
  for (const RamCandidate& each : candidates) {
    const GuestPhys begin(each.mapping.begin);
    // The largest come first, and all that is left out is part of one of them.
    const bool is_part = std::ranges::any_of(regions, [&](const GuestMemory::CopiedRegion& other) {
      return begin.is_in(other.base, other.size);
    });
    if (!is_part) regions.push_back({begin, each.size(), each.bytes, each.offset});
  }
  const auto any = [](const VmcoreInfo&) { return true; };
  const auto infos = guest_linux::find_vmcoreinfo(GuestMemory::by_copies(regions), any);
  if (infos.empty()) {
    return not_found(
        "no Linux is to be seen in its guest: it is another system, has not booted yet, or its "
        "memory is encrypted");
  }
  std::optional<Error> failure;
  for (const VmcoreInfo& info : infos) {
    auto found = RamSearch(candidates, info).run();
    if (found) return found;
    if (!failure) failure = std::move(found).error();
  }
  return tl::make_unexpected(std::move(*failure));
}

}  // namespace ringside::vmm
