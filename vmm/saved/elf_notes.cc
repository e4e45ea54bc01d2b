#include "vmm/saved/elf_notes.h"

#include <optional>
#include <utility>

#include "vmm/base/bytes.h"

namespace ringside::vmm::core_notes {
namespace {

using Bytes = std::span<const std::byte>;

/// NT_PRSTATUS: what every vCPU has.
std::optional<Registers> status_registers(Bytes note) {
  if (note.size() < kPrStatusBytes) return std::nullopt;
  Registers registers;
  for (std::size_t i = 0; i < kUserRegisters.size(); ++i) {
    const arch::Register which = kUserRegisters[i];
    if (which != nullptr) {
      registers.*which = load_at<std::uint64_t>(note, kPrStatusRegisters + i * 8);
    }
  }
  return registers;
}

std::optional<Registers> qemu_registers(Bytes note) {
  if (note.size() < kQemuKernelGs || load_at<std::uint32_t>(note, 0) != kQemuVersion) {
    return std::nullopt;
  }
  Registers registers;
  for (std::size_t i = 0; i < kQemuOrder.size(); ++i) {
    registers.*kQemuOrder[i] = load_at<std::uint64_t>(note, kQemuRegisters + i * 8);
  }
  const auto segment = [&](QemuSegment which) { return kQemuSegments + which * kSegmentBytes; };
  registers.cs = load_at<std::uint32_t>(note, segment(Cs));
  registers.ss = load_at<std::uint32_t>(note, segment(Ss));
  registers.fs_base = load_at<std::uint64_t>(note, segment(Fs) + kSegmentBase);
  registers.gs_base = load_at<std::uint64_t>(note, segment(Gs) + kSegmentBase);
  registers.cr0 = load_at<std::uint64_t>(note, kQemuControl);
  registers.cr3 = load_at<std::uint64_t>(note, kQemuControl + std::size_t{3} * 8);
  registers.cr4 = load_at<std::uint64_t>(note, kQemuControl + std::size_t{4} * 8);
  registers.kernel_gs_base = load_within<std::uint64_t>(note, kQemuKernelGs).value_or(0);
  // The note has no EFER. With paging in 64-bit mode LME and LMA are set: CR4.PAE and a flag of CS.
  constexpr std::uint64_t kLongMode = 1 << 8 | 1 << 10;
  const bool wide = (load_at<std::uint32_t>(note, segment(Cs) + kSegmentFlags) & kLongFlag) != 0;
  if (arch::pages(registers) && (wide || registers.rip >> 32 != 0)) registers.efer = kLongMode;
  return registers;
}

}  // namespace

void NoteReader::read(Bytes notes) {
  while (const auto note = take_elf_note(notes)) take(note->type, note->name, note->description);
}

void NoteReader::take(std::uint32_t type, std::string_view name, Bytes bytes) {
  if (name == "CORE" && type == NT_PRSTATUS && by_status_.size() < kMaxVcpus) {
    if (const auto registers = status_registers(bytes)) by_status_.push_back(*registers);
  }
  if (name == "QEMU" && type == 0 && by_qemu_.size() < kMaxVcpus) {
    if (const auto registers = qemu_registers(bytes)) by_qemu_.push_back(*registers);
  }
}

NotedVcpus NoteReader::vcpus() && {
  const bool all = by_status_.empty() || by_status_.size() == by_qemu_.size();
  if (all && !by_qemu_.empty()) return {std::move(by_qemu_), true};
  return {std::move(by_status_), false};
}

}  // namespace ringside::vmm::core_notes
