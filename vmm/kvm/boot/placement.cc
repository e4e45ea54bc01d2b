// Keeps the free pieces of low RAM, and takes room from them.
#include "vmm/kvm/boot/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"
#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {
namespace {

using arch::kPageSize;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kMemoryStep = 64 * kMiB;
constexpr std::uint64_t kLeastMemory = 256 * kMiB;  // the least --memory

class FreeRam {
 public:
  explicit FreeRam(std::uint64_t ram_size) {
    const std::uint64_t end = round_down(std::min(ram_size, kHoleStart), kPageSize);
    if (end > kKernelStart) pieces_.push_back({kKernelStart, end});
    if (const auto shim = shim_memory(ram_size)) take(shim->base.raw(), shim->size);
  }

  /// False, and nothing taken, unless all of it is free.
  bool take(std::uint64_t base, std::uint64_t size) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const Piece piece = pieces_[i];
      if (base < piece.start || base > piece.end || size > piece.end - base) continue;
      pieces_[i].end = base;
      pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                     {base + size, piece.end});
      return true;
    }
    return false;
  }
  std::optional<std::uint64_t> take_lowest(std::uint64_t size, std::uint64_t alignment) {
    for (const Piece& piece : pieces_) {
      const std::uint64_t base = round_up(piece.start, alignment);
      if (take(base, size)) return base;
    }
    return std::nullopt;
  }
  /// Page-aligned, and ends at `limit` or lower.
  std::optional<std::uint64_t> take_highest(std::uint64_t size, std::uint64_t limit) {
    for (std::size_t i = pieces_.size(); i-- > 0;) {
      const std::uint64_t end = std::min(pieces_[i].end, limit);
      if (end < pieces_[i].start || size > end - pieces_[i].start) continue;
      const std::uint64_t base = round_down(end - size, kPageSize);
      if (base >= pieces_[i].start && take(base, size)) return base;
    }
    return std::nullopt;
  }

 private:
  struct Piece {
    std::uint64_t start, end;
  };
  std::vector<Piece> pieces_;  // ascending
};

std::optional<Placement> try_place(const KernelRoom& room, std::uint64_t initrd_size,
                                   std::uint64_t ram_size) {
  FreeRam ram(ram_size);
  Placement placement;
  if (!room.pieces.empty()) placement.kernel = room.pieces.front().base;
  for (const GuestMemory::Extent& piece : room.pieces) {
    if (ram.take(piece.base.raw(), piece.size)) continue;
    if (room.alignment == 0) return std::nullopt;
    const auto base = ram.take_lowest(piece.size, room.alignment);
    if (!base) return std::nullopt;
    placement.kernel = GuestPhys(*base);
  }
  if (initrd_size == 0) return placement;
  const auto initrd = ram.take_highest(initrd_size, room.initrd_end);
  if (!initrd) return std::nullopt;
  placement.initrd = GuestPhys(*initrd);
  return placement;
}

/// Whether the piece can be at its address, given enough RAM.
Result<void> check_piece(const GuestMemory::Extent& piece, std::string_view name) {
  const std::uint64_t base = piece.base.raw();
  const auto invalid = [&](std::string_view why) {
    return fail(ErrorCode::Invalid, fmt::format("{}: a segment at {:#x} of {:#x} bytes {}", name,
                                                base, piece.size, why));
  };
  if (base < kKernelStart)
    return invalid("lies below 0x100000, where boot parameters are: link the kernel higher");
  if (base > kHoleStart || piece.size > kHoleStart - base)
    return invalid("goes beyond 3 GiB, where no RAM is: link the kernel lower");
  const std::uint64_t shim = kShimMemory.base.raw();
  if (base < shim + kShimMemory.size && base + piece.size > shim) {
    return invalid(fmt::format("touches {:#x} to {:#x}, which tracing needs: link it elsewhere",
                               shim, shim + kShimMemory.size));
  }
  return {};
}

std::uint64_t mebibytes(std::uint64_t bytes) {
  return bytes / kMiB + (bytes % kMiB != 0 ? 1 : 0);
}

}  // namespace

Result<Placement> place_kernel(const KernelRoom& room, std::uint64_t initrd_size,
                               std::uint64_t ram_size, std::string_view name) {
  if (room.alignment == 0) {
    for (const GuestMemory::Extent& piece : room.pieces) TRY(check_piece(piece, name));
  }
  if (const auto placement = try_place(room, initrd_size, ram_size)) return *placement;

  std::uint64_t kernel_size = 0;
  for (const GuestMemory::Extent& piece : room.pieces) kernel_size += piece.size;
  const std::string what =
      fmt::format("{}: no room for the kernel ({} MiB) and the initrd ({} MiB)", name,
                  mebibytes(kernel_size), mebibytes(initrd_size));
  const std::uint64_t start = round_down(ram_size, kMemoryStep) + kMemoryStep;
  for (std::uint64_t size = std::max(kLeastMemory, start); size <= kHoleStart;
       size += kMemoryStep) {
    if (!try_place(room, initrd_size, size)) continue;
    return fail(ErrorCode::Limit, fmt::format("{} in {} MiB of RAM: give --memory {}m or more",
                                              what, ram_size / kMiB, size / kMiB));
  }
  return fail(ErrorCode::Limit, what + " below 3 GiB, however much RAM there is");
}

}  // namespace ringside::vmm::kvm
