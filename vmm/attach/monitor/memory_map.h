// Finds out from a QEMU's monitor where it has its guest's RAM: which memory backends there are
// (query-memdev), and where the guest sees each part of them (`info mtree -f`). Pure. Hostile
// input: if anything does not fit together, everything is refused.
// Used by QemuRam. Does not: know host addresses.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm {

struct MemoryBackend {
  std::string name;
  std::uint64_t size = 0;
};

/// A piece of RAM: `size` bytes of a backend from `offset` on, which the guest sees at `base`.
struct MappedPiece {
  GuestPhys base;
  std::uint64_t size = 0;
  std::size_t backend = 0;  // in MemoryMap::backends
  std::uint64_t offset = 0;
};

struct MemoryMap {
  std::vector<MemoryBackend> backends;
  std::vector<MappedPiece> pieces;  // in order, page-aligned, as long as they can be
};

/// `memdevs`: the answer to query-memdev. `tree`: what `info mtree -f` prints. RAM of devices
/// (a display's, a PCI card's) is none of the guest's, and left out.
Result<MemoryMap> read_memory_map(const nlohmann::json& memdevs, std::string_view tree);

/// Where memory that is plugged in later will be, from what `info mtree` prints; empty when the
/// machine takes none.
Result<std::optional<GuestMemory::Extent>> read_plug_window(std::string_view tree);

/// The host address in what `gpa2hva` prints; Invalid when that is another backend's.
Result<std::uint64_t> read_host_address(std::string_view answer, std::string_view backend);

}  // namespace ringside::vmm
