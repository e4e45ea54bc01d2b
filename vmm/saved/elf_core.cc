// In this file, top to bottom: reading the file, the headers, the segments.
#include "vmm/saved/elf_core.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"
#include "vmm/base/numbers.h"
#include "vmm/saved/elf_notes.h"

namespace ringside::vmm {
namespace {

bool read_at(int fd, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got <= 0) return false;
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

template <class T>
std::optional<T> read_one(int fd, std::uint64_t offset) {
  T value;
  if (!read_at(fd, offset, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
  return value;
}

class CoreReader {
 public:
  CoreReader(int fd, std::uint64_t size) : fd_(fd), size_(size) {}

  Result<ElfCore> read() {
    TRY(read_header());
    for (const Elf64_Phdr& header : headers_) {
      if (header.p_type == PT_NOTE) TRY(read_notes(header));
    }
    core_.vcpus = std::move(notes_).vcpus();
    take_segments();
    if (core_.segments.empty()) {
      return fail(ErrorCode::Invalid, "it is an ELF core without any memory");
    }
    return std::move(core_);
  }

 private:
  Result<void> read_header();
  template <class Header, class Segment, class Section>
  Result<void> read_headers();
  Result<void> read_notes(const Elf64_Phdr& header);
  void take_segments();

  int fd_;
  std::uint64_t size_;
  std::vector<Elf64_Phdr> headers_;
  ElfCore core_;
  core_notes::NoteReader notes_;
};

Result<void> CoreReader::read_header() {
  const auto ident = read_one<std::array<unsigned char, EI_NIDENT>>(fd_, 0);
  if (!ident || (*ident)[EI_DATA] != ELFDATA2LSB) {
    return fail(ErrorCode::Unsupported, "it is an ELF file, but not of an x86-64 machine");
  }
  if ((*ident)[EI_CLASS] == ELFCLASS32) return read_headers<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr>();
  return read_headers<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr>();
}

template <class Header, class Segment, class Section>
Result<void> CoreReader::read_headers() {
  const auto header = read_one<Header>(fd_, 0);
  if (!header || (header->e_machine != EM_X86_64 && header->e_machine != EM_386)) {
    return fail(ErrorCode::Unsupported, "it is an ELF file, but not of an x86-64 machine");
  }
  if (header->e_type != ET_CORE) {
    return fail(ErrorCode::Invalid, "it is an ELF file, but no core");
  }
  std::uint64_t count = header->e_phnum;
  if (count == PN_XNUM) {  // the number is in the first section header
    const auto section = read_one<Section>(fd_, header->e_shoff);
    count = section ? section->sh_info : 0;
  }
  if (count == 0 || header->e_phentsize != sizeof(Segment)) {
    return fail(ErrorCode::Invalid, "its ELF header is damaged");
  }
  if (header->e_phoff > size_ || count > (size_ - header->e_phoff) / sizeof(Segment)) {
    return fail(ErrorCode::Invalid, "it ends within its ELF headers");
  }
  if (count > ElfCore::kMaxSegments) {
    return fail(ErrorCode::Unsupported,
                fmt::format("it has {} segments, and {} are the most; dump the guest without "
                            "paging (no -p)",
                            count, ElfCore::kMaxSegments));
  }
  std::vector<Segment> segments(count);
  if (!read_at(fd_, header->e_phoff, std::as_writable_bytes(std::span(segments)))) {
    return fail(ErrorCode::Io, "its ELF headers cannot be read");
  }
  for (const Segment& segment : segments) {
    Elf64_Phdr& wide = headers_.emplace_back();
    wide.p_type = segment.p_type;
    wide.p_offset = segment.p_offset;
    wide.p_paddr = segment.p_paddr;
    wide.p_filesz = segment.p_filesz;
  }
  return {};
}

Result<void> CoreReader::read_notes(const Elf64_Phdr& header) {
  if (header.p_filesz > core_notes::kMaxNoteBytes || header.p_offset > size_ ||
      header.p_filesz > size_ - header.p_offset) {
    return fail(ErrorCode::Invalid, "it ends within its ELF notes");
  }
  std::vector<std::byte> bytes(header.p_filesz);
  if (!read_at(fd_, header.p_offset, bytes)) {
    return fail(ErrorCode::Io, "its ELF notes cannot be read");
  }
  notes_.read(bytes);
  return {};
}

/// Whole pages, each once: a kdump names the kernel's image a second time.
void CoreReader::take_segments() {
  std::vector<ElfCore::Segment> found;
  for (const Elf64_Phdr& header : headers_) {
    if (header.p_type != PT_LOAD || header.p_paddr % arch::kPageSize != 0) continue;
    const std::uint64_t left = size_ - std::min(size_, header.p_offset);
    const std::uint64_t there = std::min(header.p_filesz, left);
    core_.missing += header.p_filesz - there;  // of a lie the sum may wrap: it is for a message
    const std::uint64_t size = round_down(there, arch::kPageSize);
    if (size == 0 || !GuestPhys(header.p_paddr).checked_add(size)) continue;
    found.push_back({GuestPhys(header.p_paddr), size, header.p_offset});
  }
  std::ranges::stable_sort(found, {}, &ElfCore::Segment::base);
  for (ElfCore::Segment segment : found) {
    if (!core_.segments.empty()) {
      ElfCore::Segment& last = core_.segments.back();
      const GuestPhys end = last.base.wrapping_add(last.size);  // was checked above
      if (segment.base < end) {
        const std::uint64_t known = std::min(end.offset_from(segment.base), segment.size);
        segment = {segment.base.wrapping_add(known), segment.size - known, segment.offset + known};
      }
      if (segment.size == 0) continue;
      if (segment.base == end && segment.offset == last.offset + last.size) {
        last.size += segment.size;
        continue;
      }
    }
    core_.segments.push_back(segment);
  }
}

}  // namespace

bool ElfCore::is_elf(const std::vector<std::byte>& start) {
  return begins_with(start, {ELFMAG, SELFMAG});
}

Result<ElfCore> ElfCore::read(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size < 0) return fail(ErrorCode::Io, "it cannot be read");
  return CoreReader(fd, static_cast<std::uint64_t>(info.st_size)).read();
}

}  // namespace ringside::vmm
