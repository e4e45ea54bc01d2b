// Small kernel files made in memory: ELF of both classes, flat Multiboot, bzImages with a payload.
// Used by unit tests and as the first inputs of the fuzz targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ringside::vmm::testing {

using Bytes = std::vector<std::byte>;

/// Little-endian values at places of their own.
template <class T>
void set(Bytes& bytes, std::size_t at, T value);

struct SampleSegment {
  std::uint64_t vaddr = 0x100000, paddr = 0x100000;
  std::uint64_t memory_size = 0;  // 0: as large as its bytes
  Bytes bytes = Bytes(64, std::byte{0x90});
};

struct SampleElf {
  bool is_64 = true;
  std::uint16_t machine = 62;  // EM_X86_64; 3: EM_386
  std::uint64_t entry = 0x100010;
  std::vector<SampleSegment> segments = {SampleSegment{}};
  std::optional<std::uint32_t> pvh_entry;
};
Bytes sample_elf(const SampleElf& elf);

/// Three words, padded to 32 bytes: the start of a segment makes an ELF image a Multiboot kernel.
Bytes sample_multiboot_header(std::uint32_t flags);
/// A flat file: 16 bytes, the header with its addresses, code; loaded at 1 MiB, with a bss.
Bytes sample_flat_kernel();

struct SampleBzImage {
  std::uint16_t version = 0x020f;
  std::uint16_t xloadflags = 1;
  std::uint8_t relocatable = 1;
  std::uint32_t alignment = 0x200000;
  std::uint32_t command_line = 2047;
  std::uint32_t initrd_last = 0x7fffffff;
  std::uint64_t preferred_start = 0x1000000;
  std::uint32_t init_size = 0x400000;
  Bytes payload;  // packed, with the trailer
};
Bytes sample_bz_image(const SampleBzImage& image);

/// `bytes` as a kernel's build packs them: "gzip", "xz", "lzma", "zstd", "lz4" or "bzip2".
Bytes packed(const Bytes& bytes, std::string_view packing);

template <class T>
void set(Bytes& bytes, std::size_t at, T value) {
  if (bytes.size() < at + sizeof value) bytes.resize(at + sizeof value);
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes[at + i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> 8 * i);
}

}  // namespace ringside::vmm::testing
