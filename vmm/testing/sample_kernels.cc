#include "vmm/testing/sample_kernels.h"

#include <bzlib.h>
#include <elf.h>
#include <lz4.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "vmm/base/check.h"

namespace ringside::vmm::testing {
namespace {

template <class T>
void append(Bytes& bytes, const T& value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

Bytes xen_note(std::uint32_t entry) {
  Bytes note;
  append(note, Elf64_Nhdr{4, 4, 18});
  append(note, std::array<char, 4>{'X', 'e', 'n', 0});
  append(note, entry);
  return note;
}

template <class Header, class ProgramHeader>
Bytes build(const SampleElf& elf) {
  struct Part {
    std::uint32_t type;
    SampleSegment segment;
  };
  std::vector<Part> parts;
  for (const SampleSegment& segment : elf.segments) parts.push_back({PT_LOAD, segment});
  if (elf.pvh_entry) parts.push_back({PT_NOTE, {0, 0, 0, xen_note(*elf.pvh_entry)}});

  Header header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = elf.is_64 ? ELFCLASS64 : ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = elf.machine;
  header.e_version = EV_CURRENT;
  header.e_entry = static_cast<decltype(header.e_entry)>(elf.entry);
  header.e_phoff = sizeof(Header);
  header.e_ehsize = sizeof(Header);
  header.e_phentsize = sizeof(ProgramHeader);
  header.e_phnum = static_cast<std::uint16_t>(parts.size());
  Bytes file;
  append(file, header);
  std::size_t offset = sizeof(Header) + parts.size() * sizeof(ProgramHeader);
  for (const auto& [type, segment] : parts) {
    ProgramHeader program{};
    program.p_type = type;
    program.p_offset = static_cast<decltype(program.p_offset)>(offset);
    program.p_vaddr = static_cast<decltype(program.p_vaddr)>(segment.vaddr);
    program.p_paddr = static_cast<decltype(program.p_paddr)>(segment.paddr);
    program.p_filesz = static_cast<decltype(program.p_filesz)>(segment.bytes.size());
    program.p_memsz = static_cast<decltype(program.p_memsz)>(
        segment.memory_size == 0 ? segment.bytes.size() : segment.memory_size);
    append(file, program);
    offset += segment.bytes.size();
  }
  for (const auto& [type, segment] : parts)
    file.insert(file.end(), segment.bytes.begin(), segment.bytes.end());
  return file;
}

// SAFETY (both): unsigned char and char may alias.
unsigned char* octets(Bytes& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
const unsigned char* octets(const Bytes& bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

std::size_t pack_gzip(const Bytes& bytes, Bytes& out) {
  z_stream stream{};
  CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = const_cast<unsigned char*>(octets(bytes));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = octets(out);
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  const std::size_t size = stream.total_out;
  deflateEnd(&stream);
  return size;
}

std::size_t run_lzma(lzma_stream& stream, const Bytes& bytes, Bytes& out) {
  stream.next_in = octets(bytes);
  stream.avail_in = bytes.size();
  stream.next_out = octets(out);
  stream.avail_out = out.size();
  CHECK(lzma_code(&stream, LZMA_FINISH) == LZMA_STREAM_END);
  const std::size_t size = stream.total_out;
  lzma_end(&stream);
  return size;
}

/// With the filter for x86 code, as scripts/xz_wrap.sh has it.
std::size_t pack_xz(const Bytes& bytes, Bytes& out) {
  lzma_options_lzma options;
  CHECK(!lzma_lzma_preset(&options, 1));
  const std::array<lzma_filter, 3> filters{
      {{LZMA_FILTER_X86, nullptr}, {LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}}};
  lzma_stream stream = LZMA_STREAM_INIT;
  CHECK(lzma_stream_encoder(&stream, filters.data(), LZMA_CHECK_CRC32) == LZMA_OK);
  return run_lzma(stream, bytes, out);
}

std::size_t pack_lzma(const Bytes& bytes, Bytes& out) {
  lzma_options_lzma options;
  CHECK(!lzma_lzma_preset(&options, 1));
  lzma_stream stream = LZMA_STREAM_INIT;
  CHECK(lzma_alone_encoder(&stream, &options) == LZMA_OK);
  return run_lzma(stream, bytes, out);
}

std::size_t pack_lz4(const Bytes& bytes, Bytes& out) {
  set(out, 0, std::uint32_t{0x184c2102});
  // SAFETY: char may alias.
  const int size = LZ4_compress_default(
      reinterpret_cast<const char*>(bytes.data()), reinterpret_cast<char*>(out.data() + 8),
      static_cast<int>(bytes.size()), static_cast<int>(out.size() - 8));
  CHECK(size > 0);
  set(out, 4, static_cast<std::uint32_t>(size));
  return 8 + static_cast<std::size_t>(size);
}

std::size_t pack_bzip2(const Bytes& bytes, Bytes& out) {
  auto size = static_cast<unsigned>(out.size());
  // SAFETY: char may alias; the library only reads its input.
  CHECK(BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(out.data()), &size,
                                 const_cast<char*>(reinterpret_cast<const char*>(bytes.data())),
                                 static_cast<unsigned>(bytes.size()), 1, 0, 0) == BZ_OK);
  return size;
}

}  // namespace

Bytes sample_elf(const SampleElf& elf) {
  return elf.is_64 ? build<Elf64_Ehdr, Elf64_Phdr>(elf) : build<Elf32_Ehdr, Elf32_Phdr>(elf);
}

Bytes sample_multiboot_header(std::uint32_t flags) {
  constexpr std::uint32_t kMagic = 0x1badb002;
  Bytes header;
  append(header, std::array<std::uint32_t, 3>{kMagic, flags, 0 - kMagic - flags});
  header.resize(32, std::byte{0x90});
  return header;
}

Bytes sample_flat_kernel() {
  constexpr std::uint32_t kStart = 0x100000, kHeader = 16;
  Bytes file(kHeader, std::byte{0x90});
  Bytes header = sample_multiboot_header(1 << 16);
  header.resize(12);
  file.insert(file.end(), header.begin(), header.end());
  append(file, std::array<std::uint32_t, 5>{kStart + kHeader, kStart, kStart + 64, kStart + 0x2000,
                                            kStart + 48});
  file.resize(64, std::byte{0xf4});
  return file;
}

Bytes sample_bz_image(const SampleBzImage& image) {
  constexpr std::uint32_t kSectors = 1, kPayloadAt = 0x240;  // after the 64-bit entry point
  Bytes file((kSectors + 1) * 512 + kPayloadAt, std::byte{0});
  file.insert(file.end(), image.payload.begin(), image.payload.end());
  file.resize((file.size() + 15) / 16 * 16);
  set(file, 0x1f1, static_cast<std::uint8_t>(kSectors));
  set(file, 0x1f4, static_cast<std::uint32_t>((file.size() - (kSectors + 1) * 512) / 16));
  set(file, 0x1fe, std::uint16_t{0xaa55});
  set(file, 0x200, std::uint16_t{0x6aeb});  // a jump, whose length ends the header at 0x26c
  set(file, 0x202, std::uint32_t{0x53726448});
  set(file, 0x206, image.version);
  set(file, 0x211, std::uint8_t{1});
  set(file, 0x22c, image.initrd_last);
  set(file, 0x230, image.alignment);
  set(file, 0x234, image.relocatable);
  set(file, 0x236, image.xloadflags);
  set(file, 0x238, image.command_line);
  set(file, 0x248, image.payload.empty() ? 0u : kPayloadAt);
  set(file, 0x24c, static_cast<std::uint32_t>(image.payload.size()));
  set(file, 0x258, image.preferred_start);
  set(file, 0x260, image.init_size);
  return file;
}

Bytes packed(const Bytes& bytes, std::string_view packing) {
  Bytes out(2 * bytes.size() + 4096);
  if (packing == "gzip") {
    out.resize(pack_gzip(bytes, out));
    return out;  // has its own trailer
  }
  if (packing == "xz") {
    out.resize(pack_xz(bytes, out));
  } else if (packing == "lzma") {
    out.resize(pack_lzma(bytes, out));
  } else if (packing == "lz4") {
    out.resize(pack_lz4(bytes, out));
  } else if (packing == "bzip2") {
    out.resize(pack_bzip2(bytes, out));
  } else {
    CHECK(packing == "zstd");
    out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  }
  append(out, static_cast<std::uint32_t>(bytes.size()));
  return out;
}

}  // namespace ringside::vmm::testing
