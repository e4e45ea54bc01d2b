// RAM in which a kernel's image lies, for targets that read all that a guest has: a machine made of
// an input's pieces, and the writer of first inputs.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/guest_input.h"
#include "vmm/inert_machine_for_tests.h"

namespace ringside::fuzz {

// The image begins at the sixth page of RAM, and is mapped page by page.
inline constexpr std::size_t kRam = 128 << 10;
inline constexpr std::uint64_t kStext = 0xffff'ffff'8100'0000, kMap = 0xffff'ffff'8000'0000;
inline constexpr std::uint64_t kImage = 0x5000, kRoot = kImage + 0x1000, kUts = kImage + 0x2000;
inline constexpr std::uint64_t kTables = 0x1000, kImagePages = 24;
inline constexpr std::int64_t kPhysBase =
    std::int64_t{kImage} - static_cast<std::int64_t>(kStext - kMap);

/// RAM as the pieces say it, by guest-physical address.
class InputMachine final : public vmm::InertMachine {
 public:
  InputMachine(const GuestInput& input, std::uint64_t cr3)
      : ram_(kRam), memory_({{GuestPhys(0), ram_}}), cr3_(cr3) {
    for (const Piece& piece : input.pieces()) {
      if (piece.at >= kRam) continue;
      const auto bytes =
          piece.bytes.first(std::min<std::size_t>(piece.bytes.size(), kRam - piece.at));
      std::ranges::copy(bytes, ram_.begin() + static_cast<std::ptrdiff_t>(piece.at));
    }
  }
  vmm::GuestMemory& memory() override { return memory_; }

 protected:
  Result<Registers> registers(unsigned) override {
    Registers registers;
    registers.cr3 = cr3_;
    return registers;
  }

 private:
  std::vector<std::byte> ram_;
  vmm::GuestMemory memory_;
  std::uint64_t cr3_;
};

/// Writes RAM with page tables and a release string.
class Ram {
 public:
  Ram() : bytes_(kRam) {
    map(kRoot, kTables);
    put_text(kUts + 4 + 130, "6.1.0-test");
  }
  /// Three pages of tables, which map the image for this root.
  Ram& map(std::uint64_t root, std::uint64_t tables) {
    put(root + 511 * 8, tables | 1);
    put(tables + 510 * 8, (tables + 0x1000) | 1);
    put(tables + 0x1000 + 8 * 8, (tables + 0x2000) | 1);
    for (std::uint64_t n = 0; n < kImagePages; ++n) {
      put(tables + 0x2000 + n * 8, (kImage + n * 4096) | 1);
    }
    return *this;
  }
  void put(std::uint64_t at, std::uint64_t value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  Ram& put_text(std::uint64_t at, std::string_view text) {
    std::memcpy(bytes_.data() + at, text.data(), text.size());
    return *this;
  }
  void put_bytes(std::uint64_t at, std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  /// Without the zeroes that RAM is full of.
  std::vector<std::byte> input() const {
    constexpr std::size_t kPart = 512;
    std::vector<Piece> pieces;
    for (std::size_t at = 0; at < kRam; at += kPart) {
      const auto part = std::span(bytes_).subspan(at, kPart);
      if (std::ranges::all_of(part, [](std::byte b) { return b == std::byte{0}; })) continue;
      pieces.push_back({at, kPart, 0, part});
    }
    ScriptWriter rest;
    rest.put(kRoot, kStext + 0x2000, std::uint32_t{0x1800});
    return write_guest(pieces, rest.bytes());
  }

 private:
  std::vector<std::byte> bytes_;
};

/// VMCOREINFO of the kernel in that RAM, with the root table at `root` there.
inline std::string info_text(std::uint64_t root = kRoot) {
  return fmt::format(
      "OSRELEASE=6.1.0-test\nPAGESIZE=4096\nSYMBOL(init_uts_ns)={:x}\n"
      "OFFSET(uts_namespace.name)=4\nSYMBOL(_stext)={:x}\nSYMBOL(swapper_pg_dir)={:x}\n"
      "NUMBER(phys_base)={}\nNUMBER(pgtable_l5_enabled)=0\nNUMBER(sme_mask)=0\n",
      kStext + kUts - kImage, kStext, kStext + root - kImage, kPhysBase);
}

}  // namespace ringside::fuzz
