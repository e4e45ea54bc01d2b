// In this file, top to bottom: the notes, the headers, memory, the file.
#include "vmm/saved/core_writer.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/arch/x86_64/elf_header.h"
#include "vmm/base/numbers.h"
#include "vmm/base/unique_fd.h"
#include "vmm/saved/elf_notes.h"

namespace ringside::vmm {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kChunk = 1 << 20;
/// Between two calls of the progress function.
constexpr std::uint64_t kProgressEvery = 16 << 20;

template <class T>
void put(std::span<std::byte> bytes, std::size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class T>
void append(Bytes& to, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void append_note(Bytes& notes, std::string_view name, std::uint32_t type,
                 std::span<const std::byte> data) {
  append(notes, Elf64_Nhdr{static_cast<std::uint32_t>(name.size() + 1),
                           static_cast<std::uint32_t>(data.size()), type});
  const auto text = std::as_bytes(std::span(name));
  notes.insert(notes.end(), text.begin(), text.end());
  notes.resize(round_up(notes.size() + 1, 4));
  notes.insert(notes.end(), data.begin(), data.end());
  notes.resize(round_up(notes.size(), 4));
}

Bytes status_note(unsigned vcpu, const Registers& registers) {
  using namespace core_notes;
  Bytes note(kPrStatusBytes);
  put(note, kPrStatusPid, vcpu + 1);  // as QEMU counts
  for (std::size_t i = 0; i < kUserRegisters.size(); ++i) {
    const arch::Register which = kUserRegisters[i];
    if (which != nullptr) put(note, kPrStatusRegisters + i * 8, registers.*which);
  }
  return note;
}

/// The descriptor tables' places and CR2 are not known, and zero.
Bytes qemu_note(const Registers& registers) {
  using namespace core_notes;
  Bytes note(kQemuBytes);
  put(note, 0, kQemuVersion);
  put(note, 4, static_cast<std::uint32_t>(kQemuBytes));
  for (std::size_t i = 0; i < kQemuOrder.size(); ++i) {
    put(note, kQemuRegisters + i * 8, registers.*kQemuOrder[i]);
  }
  const auto segment = [&](QemuSegment which, std::uint64_t selector, std::uint32_t flags,
                           std::uint64_t base) {
    const std::size_t at = kQemuSegments + which * kSegmentBytes;
    const auto level = static_cast<std::uint32_t>(selector & 3) << kSegmentLevelShift;
    put(note, at, static_cast<std::uint32_t>(selector));
    put(note, at + kSegmentLimit, UINT32_MAX);
    put(note, at + kSegmentFlags, flags | level);
    put(note, at + kSegmentBase, base);
  };
  segment(Cs, registers.cs, arch::in_long_mode(registers) ? kLongCode : kPlainCode, 0);
  segment(Ss, registers.ss, kPlainData, 0);
  segment(Fs, 0, kPlainData, registers.fs_base);
  segment(Gs, 0, kPlainData, registers.gs_base);
  put(note, kQemuControl, registers.cr0);
  put(note, kQemuControl + std::size_t{3} * 8, registers.cr3);
  put(note, kQemuControl + std::size_t{4} * 8, registers.cr4);
  put(note, kQemuKernelGs, registers.kernel_gs_base);
  return note;
}

Bytes notes_of(const CoreContents& contents) {
  Bytes notes;
  for (unsigned vcpu = 0; vcpu < contents.vcpus.size(); ++vcpu) {
    append_note(notes, "CORE", NT_PRSTATUS, status_note(vcpu, contents.vcpus[vcpu]));
  }
  for (const Registers& registers : contents.vcpus) {
    append_note(notes, "QEMU", 0, qemu_note(registers));
  }
  if (!contents.vmcoreinfo.empty()) {
    append_note(notes, "VMCOREINFO", 0, std::as_bytes(std::span(contents.vmcoreinfo)));
  }
  return notes;
}

/// Everything before memory, which begins at the returned bytes' end, at a page.
Bytes headers(const std::vector<GuestMemory::Extent>& ram, const Bytes& notes) {
  Elf64_Ehdr header = arch::elf_header(ET_CORE);
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<Elf64_Half>(1 + ram.size());
  const std::uint64_t notes_at = sizeof header + header.e_phnum * sizeof(Elf64_Phdr);
  std::uint64_t offset = round_up(notes_at + notes.size(), arch::kPageSize);

  Bytes all;
  append(all, header);
  Elf64_Phdr note{};
  note.p_type = PT_NOTE;
  note.p_offset = notes_at;
  note.p_filesz = note.p_memsz = notes.size();
  append(all, note);
  for (const GuestMemory::Extent& extent : ram) {
    Elf64_Phdr load{};
    load.p_type = PT_LOAD;
    load.p_flags = PF_R | PF_W | PF_X;
    load.p_paddr = extent.base.raw();
    load.p_offset = offset;
    load.p_filesz = load.p_memsz = extent.size;
    append(all, load);
    offset += extent.size;
  }
  all.insert(all.end(), notes.begin(), notes.end());
  all.resize(round_up(all.size(), arch::kPageSize));
  return all;
}

/// How much RAM is at `at` in one piece, at most `most`; 0: none.
std::uint64_t ram_at(const GuestMemory& memory, GuestPhys at, std::uint64_t most) {
  if (!memory.is_ram(at, arch::kPageSize)) return 0;
  std::uint64_t size = arch::kPageSize;
  while (size * 2 <= most && memory.is_ram(at, size * 2)) size *= 2;
  for (std::uint64_t more = size / 2; more >= arch::kPageSize; more /= 2) {
    if (size + more <= most && memory.is_ram(at, size + more)) size += more;
  }
  return size;
}

/// All of RAM, in order; what touches is one.
std::vector<GuestMemory::Extent> extents_of(const GuestMemory& memory) {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 52;  // of what a processor can address
  std::vector<GuestMemory::Extent> extents;
  std::uint64_t left = memory.size();
  for (GuestPhys at(0); left >= arch::kPageSize && at.raw() < kEnd;) {
    const std::uint64_t size = ram_at(memory, at, left);
    if (size != 0 && !extents.empty() &&
        extents.back().base.wrapping_add(extents.back().size) == at) {
      extents.back().size += size;
    } else if (size != 0) {
      extents.push_back({at, size});
    }
    left -= size;
    at = at.wrapping_add(std::max<std::uint64_t>(size, arch::kPageSize));
  }
  return extents;
}

bool is_zero(std::span<const std::byte> page) {
  return page[0] == std::byte{0} && std::memcmp(page.data(), page.data() + 1, page.size() - 1) == 0;
}

/// One that is removed unless it was finished.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd) return NewFile(std::move(fd), path);
    if (errno != EEXIST) return fail(ErrorCode::Io, why(path));
    return fail(ErrorCode::Io, path + " exists already, and is not overwritten");
  }
  NewFile(NewFile&& other) noexcept
      : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, {})) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written =
          ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return fail(ErrorCode::Io, why(path_));
      if (written == 0) return fail(ErrorCode::Io, "nothing more can be written to " + path_);
      offset += static_cast<std::uint64_t>(written);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }
  Result<void> finish(std::uint64_t size) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0 || !flushed()) {
      return fail(ErrorCode::Io, why(path_));
    }
    path_.clear();
    return {};
  }

 private:
  NewFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  /// A network's file system tells only when a descriptor is closed that there was no room.
  bool flushed() const {
    const int again = ::dup(fd_.get());
    return again >= 0 && ::close(again) == 0;
  }
  static std::string why(const std::string& path) {
    return fmt::format("cannot write {}: {}", path, std::strerror(errno));
  }
  UniqueFd fd_;
  std::string path_;
};

class Copy {
 public:
  Copy(const GuestMemory& memory, NewFile& file, const CoreProgress& progress)
      : memory_(memory), file_(file), progress_(progress), chunk_(kChunk) {}

  /// `size` bytes from `from` on, to `offset` in the file; holes where there are only zeros.
  Result<void> copy(GuestPhys from, std::uint64_t size, std::uint64_t offset) {
    for (std::uint64_t at = 0; at < size; at += kChunk) {
      const auto bytes = std::span(chunk_).first(std::min<std::uint64_t>(kChunk, size - at));
      if (!memory_.read(from.wrapping_add(at), bytes)) {
        return fail(ErrorCode::MachineGone, "the guest's memory cannot be read");
      }
      TRY(write(bytes, offset + at));
      done_ += bytes.size();
      if (done_ < next_progress_ || !progress_) continue;
      next_progress_ = done_ + kProgressEvery;
      if (!progress_(done_, memory_.size())) return fail(ErrorCode::Io, "it was interrupted");
    }
    return {};
  }
  std::uint64_t stored() const { return stored_; }

 private:
  /// Pages that are next to each other at once.
  Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) {
    const auto is_hole = [&](std::size_t at) {
      return is_zero(bytes.subspan(at, std::min(arch::kPageSize, bytes.size() - at)));
    };
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t begin = at;
      while (at < bytes.size() && !is_hole(at)) at = std::min(at + arch::kPageSize, bytes.size());
      TRY(file_.write(offset + begin, bytes.subspan(begin, at - begin)));
      stored_ += at - begin;
      while (at < bytes.size() && is_hole(at)) at += arch::kPageSize;
    }
    return {};
  }

  const GuestMemory& memory_;
  NewFile& file_;
  const CoreProgress& progress_;
  Bytes chunk_;
  std::uint64_t done_ = 0, next_progress_ = kProgressEvery, stored_ = 0;
};

}  // namespace

Result<WrittenCore> write_elf_core(PausedMachine& machine, const CoreContents& contents,
                                   const std::string& path, const CoreProgress& progress) {
  const GuestMemory& memory = machine.memory();
  const auto ram = extents_of(memory);
  const auto present = memory.present_extents();
  if (ram.size() >= PN_XNUM - 1) {
    return fail(ErrorCode::Limit, "the guest's memory is in too many pieces");
  }
  const Bytes start = headers(ram, notes_of(contents));
  NewFile file = TRY(NewFile::create(path));
  TRY(file.write(0, start));
  Copy copy(memory, file, progress);
  std::uint64_t offset = start.size();
  for (const GuestMemory::Extent& extent : ram) {
    const GuestPhys begin = extent.base, end = begin.wrapping_add(extent.size);
    for (const GuestMemory::Extent& part : present) {
      const GuestPhys from = std::max(begin, part.base);
      const GuestPhys to = std::min(end, part.base.wrapping_add(part.size));
      if (from >= to) continue;
      TRY(copy.copy(from, to.offset_from(from), offset + from.offset_from(begin)));
    }
    offset += extent.size;
  }
  TRY(file.finish(offset));
  return WrittenCore{offset - start.size(), copy.stored()};
}

}  // namespace ringside::vmm
