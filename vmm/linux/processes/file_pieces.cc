#include "vmm/linux/processes/file_pieces.h"

#include <algorithm>
#include <utility>

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint32_t kMostPieceSteps = 4096;  // for one piece
constexpr std::uint64_t kReturnAddress = 8;

/// A file by the addresses that it is linked at.
class LinkedFile final : public GuestReader {
 public:
  LinkedFile(const FileBytes& file, const FileElf& elf) : file_(file), elf_(elf) {}

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    const auto offset = elf_.offset_of(at.raw(), 0);
    const std::size_t done = offset ? file_.read(*offset, out) : 0;
    if (done == out.size()) return {};
    return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, at.wrapping_add(done).raw()});
  }

 private:
  const FileBytes& file_;
  const FileElf& elf_;
};

}  // namespace

std::optional<FilePieces> FilePieces::read(const FileBytes& file) {
  auto elf = FileElf::read(file);
  if (!elf || !elf->unwind_index()) return std::nullopt;
  const auto index = EhFrameIndex::read(LinkedFile(file, *elf), GuestVirt(*elf->unwind_index()));
  if (!index) return std::nullopt;
  return FilePieces(std::move(*elf), *index);
}

std::optional<FilePiece> FilePieces::at(const FileBytes& file, std::uint64_t offset) const {
  const auto address = elf_.address_of(offset, PF_X);
  if (!address) return std::nullopt;
  StepBudget budget(kMostPieceSteps);
  const auto piece = find_code_piece(LinkedFile(file, elf_), index_, GuestVirt(*address), budget);
  if (!piece) return std::nullopt;
  const auto begin = elf_.offset_of(piece->begin.raw(), PF_X);
  if (!begin) return std::nullopt;
  const FrameRules& rules = piece->rules;
  const bool may_be_called = rules.cfa.kind == RegisterRule::Kind::IsOffset &&
                             rules.cfa_register == arch::kDwarfStackPointer &&
                             rules.cfa.value == kReturnAddress;
  return FilePiece{*begin, piece->size, may_be_called};
}

}  // namespace ringside::guest_linux
