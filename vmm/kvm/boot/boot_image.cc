#include "vmm/kvm/boot/boot_image.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/kernel_file/elf_file.h"
#include "vmm/kvm/boot/boot_data.h"

namespace ringside::vmm::kvm {
namespace {

std::uint64_t physical_entry(const BootImage& image) {
  for (const BootSegment& segment : image.segments) {
    const std::uint64_t offset = image.entry - segment.vaddr;  // huge when it lies below
    if (offset < segment.memory_size) return segment.paddr + offset;
  }
  return image.entry;
}

}  // namespace

KernelRoom BootImage::room() const {
  KernelRoom room;
  for (const BootSegment& segment : segments)
    room.pieces.push_back({GuestPhys(segment.paddr), segment.memory_size});
  return room;
}

Result<BootImage> read_boot_image(std::span<const std::byte> file, std::string_view name) {
  const auto elf = ElfFile::parse(file);
  if (!elf) return fail(elf.error().code, fmt::format("{}: {}", name, elf.error().message));
  BootImage image{elf->entry(), {}, elf->pvh_entry()};
  for (const ElfFile::Segment& segment : elf->segments())
    image.segments.push_back({segment.address, segment.physical, segment.size, segment.bytes});
  image.entry = physical_entry(image);

  auto pieces = image.room().pieces;
  std::sort(pieces.begin(), pieces.end(),
            [](const auto& a, const auto& b) { return a.base < b.base; });
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (pieces[i + 1].base.is_in(pieces[i].base, pieces[i].size)) {
      return fail(ErrorCode::Invalid,
                  fmt::format("{}: two segments overlap at {:#x}", name, pieces[i + 1].base.raw()));
    }
  }
  return image;
}

Result<void> check_entry(const BootImage& image, std::uint64_t entry, std::string_view name) {
  for (const BootSegment& segment : image.segments) {
    if (entry >= segment.paddr && entry - segment.paddr < segment.memory_size) return {};
  }
  return fail(ErrorCode::Invalid,
              fmt::format("{}: its entry point {:#x} lies in no segment", name, entry));
}

Result<void> load_segments(const BootImage& image, GuestMemory& memory) {
  for (const BootSegment& segment : image.segments)
    TRY(put(memory, segment.paddr, segment.bytes, "the kernel"));
  return {};
}

}  // namespace ringside::vmm::kvm
