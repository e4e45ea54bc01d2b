// A kernel that is loaded by segments: where each goes, and the entry points. Used by boot.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/kvm/boot/placement.h"

namespace ringside::vmm::kvm {

struct BootSegment {
  std::uint64_t vaddr = 0, paddr = 0;
  std::uint64_t memory_size = 0;     // at least bytes.size(); the rest is zero
  std::span<const std::byte> bytes;  // in the file
};

struct BootImage {
  std::uint64_t entry = 0;            // guest-physical, see read_boot_image
  std::vector<BootSegment> segments;  // without empty ones, in the file's order
  std::optional<std::uint32_t> pvh_entry;

  KernelRoom room() const;
};

/// `file`: an ELF file for x86 of either class, which must outlive the result; `name` is for
/// messages. An entry point that is a virtual address of a segment is translated (kernels linked
/// high); any other is physical already. The errors of ElfFile, and Invalid for segments that
/// overlap.
Result<BootImage> read_boot_image(std::span<const std::byte> file, std::string_view name);

/// Invalid when no segment holds the entry point.
Result<void> check_entry(const BootImage& image, std::uint64_t entry, std::string_view name);
/// Copies the segments into RAM that is zero.
Result<void> load_segments(const BootImage& image, GuestMemory& memory);

}  // namespace ringside::vmm::kvm
