// Lines of QEMU's memory tree (QEMU 4.2 to 10.0, softmmu/memory.c, mtree_print_flatview):
//   FlatView #0
//    AS "memory", root: system
//    Root memory region: system
//     0000000000100000-00000000bfffffff (prio 0, ram): pc.ram @0000000000100000 KVM
// In this file, top to bottom: words of a line, backends, one view's lines, checks.
#include "vmm/attach/monitor/memory_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"
#include "vmm/qemu/qmp.h"

namespace ringside::vmm {

namespace {

using arch::kPageSize;

constexpr std::uint64_t kEndOfMemory = std::uint64_t{1} << 52;  // what page tables can name
constexpr std::size_t kMostBackends = 1024, kMostPieces = 1024, kMostLines = 1 << 20;
constexpr std::size_t kAddressDigits = 16;

auto refuse(const std::string& why) {
  return fail(ErrorCode::Invalid,
              "QEMU's description of the guest's memory makes no sense: " + why);
}

/// Takes the next line off `text`.
std::optional<std::string_view> next_line(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<std::uint64_t> take_address(std::string_view& text) {
  if (text.size() < kAddressDigits) return std::nullopt;
  const auto value = parse_number<std::uint64_t>(text.substr(0, kAddressDigits), 16);
  if (value) text.remove_prefix(kAddressDigits);
  return value;
}

/// "  FIRST-LAST (prio N, TYPE): REST"
struct RegionLine {
  std::uint64_t first = 0, last = 0;
  std::string_view type, rest;
};

std::optional<RegionLine> parse_region(std::string_view line) {
  RegionLine region;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const auto first = take_address(line);
  if (!first || !take(line, "-")) return std::nullopt;
  const auto last = take_address(line);
  if (!last || !take(line, " (prio ")) return std::nullopt;
  const std::size_t comma = line.find(", "), close = line.find("): ");
  if (comma == std::string_view::npos || close == std::string_view::npos || close < comma) {
    return std::nullopt;
  }
  return RegionLine{*first, *last, line.substr(comma + 2, close - comma - 2),
                    line.substr(close + 3)};
}

/// The offset after a backend's name; empty when `rest` is about another region.
std::optional<std::uint64_t> offset_in(std::string_view rest, std::string_view backend) {
  if (!take(rest, backend)) return std::nullopt;
  if (rest.empty()) return 0;
  if (!take(rest, " ")) return std::nullopt;
  // Without an offset only what an accelerator adds can follow: its name.
  if (!take(rest, "@"))
    return rest.find(' ') == std::string_view::npos ? std::optional(0UL) : std::nullopt;
  return take_address(rest);
}

Result<std::vector<MemoryBackend>> read_backends(const nlohmann::json& memdevs) {
  if (!memdevs.is_array() || memdevs.empty() || memdevs.size() > kMostBackends) {
    return refuse("it names no memory backends");
  }
  std::vector<MemoryBackend> backends;
  for (const nlohmann::json& entry : memdevs) {
    MemoryBackend backend{json_text(entry, "id"), 0};
    const auto size = entry.find("size");
    if (backend.name.empty() || size == entry.end() || !size->is_number_unsigned()) {
      return refuse("a memory backend has no name or size");
    }
    backend.size = size->get<std::uint64_t>();
    const bool twice = std::ranges::any_of(
        backends, [&](const MemoryBackend& other) { return other.name == backend.name; });
    if (twice || backend.size == 0 || backend.size > kEndOfMemory) {
      return refuse(fmt::format("memory backend {:.40}", printable(backend.name)));
    }
    backends.push_back(std::move(backend));
  }
  return backends;
}

/// The lines of the view that belongs to the address space "memory", which is the whole system's.
std::string_view system_view(std::string_view tree) {
  std::size_t at = 0;
  while (at < tree.size()) {
    const std::size_t begin = tree.find("FlatView #", at);
    if (begin == std::string_view::npos) return {};
    at = std::min(tree.find("FlatView #", begin + 1), tree.size());
    const std::string_view view = tree.substr(begin, at - begin);
    if (view.find(" AS \"memory\", root:") != std::string_view::npos) return view;
  }
  return {};
}

Result<std::optional<MappedPiece>> read_piece(const RegionLine& region,
                                              const std::vector<MemoryBackend>& backends) {
  // "rom" with a backend's name is RAM that the firmware has made read-only for the guest.
  if (region.type != "ram" && region.type != "rom") return std::nullopt;
  for (std::size_t i = 0; i < backends.size(); ++i) {
    const auto offset = offset_in(region.rest, backends[i].name);
    if (!offset) continue;
    const std::uint64_t size = region.last - region.first + 1;
    if (region.last < region.first || region.last >= kEndOfMemory || *offset > backends[i].size ||
        size > backends[i].size - *offset || region.first % kPageSize != 0 ||
        size % kPageSize != 0 || *offset % kPageSize != 0) {
      return refuse(fmt::format("the guest's memory at {:#x}", region.first));
    }
    return MappedPiece{GuestPhys(region.first), size, i, *offset};
  }
  return std::nullopt;
}

/// Pieces are in order already.
Result<void> check_apart(const std::vector<MappedPiece>& pieces) {
  std::vector<MappedPiece> by_backend = pieces;
  std::ranges::sort(by_backend, [](const MappedPiece& a, const MappedPiece& b) {
    return std::tie(a.backend, a.offset) < std::tie(b.backend, b.offset);
  });
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].base < pieces[i - 1].base.wrapping_add(pieces[i - 1].size)) {
      return refuse(fmt::format("two things at {:#x}", pieces[i].base.raw()));
    }
    const MappedPiece &last = by_backend[i - 1], &next = by_backend[i];
    if (next.backend == last.backend && next.offset < last.offset + last.size) {
      return refuse(
          fmt::format("the same memory at {:#x} and {:#x}", last.base.raw(), next.base.raw()));
    }
  }
  return {};
}

}  // namespace

Result<MemoryMap> read_memory_map(const nlohmann::json& memdevs, std::string_view tree) {
  MemoryMap map{TRY(read_backends(memdevs)), {}};
  std::string_view view = system_view(tree);
  if (view.empty()) return refuse("it has no view of the system's memory");
  for (std::size_t lines = 0; lines < kMostLines; ++lines) {
    const auto line = next_line(view);
    if (!line) break;
    const auto region = parse_region(*line);
    if (!region) continue;
    const auto piece = TRY(read_piece(*region, map.backends));
    if (!piece) continue;
    if (!map.pieces.empty()) {
      MappedPiece& last = map.pieces.back();
      if (last.backend == piece->backend && last.base.wrapping_add(last.size) == piece->base &&
          last.offset + last.size == piece->offset) {
        last.size += piece->size;
        continue;
      }
    }
    if (map.pieces.size() == kMostPieces) return refuse("it has too many parts");
    map.pieces.push_back(*piece);
  }
  if (map.pieces.empty()) return refuse("no memory backend is where the guest could see it");
  TRY(check_apart(map.pieces));
  return map;
}

Result<std::optional<GuestMemory::Extent>> read_plug_window(std::string_view tree) {
  for (std::size_t lines = 0; lines < kMostLines; ++lines) {
    const auto line = next_line(tree);
    if (!line) break;
    const auto region = parse_region(*line);
    if (!region || region->rest != "device-memory") continue;
    const std::uint64_t size = region->last - region->first + 1;
    if (region->last < region->first || region->last >= kEndOfMemory ||
        region->first % kPageSize != 0 || size % kPageSize != 0) {
      return refuse("the place for memory that is plugged in");
    }
    return GuestMemory::Extent{GuestPhys(region->first), size};
  }
  return std::nullopt;
}

Result<std::uint64_t> read_host_address(std::string_view answer, std::string_view backend) {
  while (answer.ends_with('\n') || answer.ends_with('\r')) answer.remove_suffix(1);
  const std::string middle = fmt::format(" ({}) is 0x", backend);
  const std::size_t at = answer.find(middle);
  if (at != std::string_view::npos) {
    const auto address = parse_number<std::uint64_t>(answer.substr(at + middle.size()), 16);
    if (address && *address != 0 && *address % kPageSize == 0) return *address;
  }
  return refuse(fmt::format("'{:.100}'", printable(answer)));
}

}  // namespace ringside::vmm
