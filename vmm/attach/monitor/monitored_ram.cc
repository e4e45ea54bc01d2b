// In this file, top to bottom: the process's mappings, the files behind them, asking and proving,
// what is plugged in.
#include "vmm/attach/monitor/monitored_ram.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vmm/arch/arch.h"
#include "vmm/attach/host/host_process.h"
#include "vmm/copied_bytes.h"
#include "vmm/process_memory.h"

namespace ringside::vmm {
namespace {

using arch::kPageSize;

/// The mappings that hold [begin, begin + size), all of it readable; none otherwise.
std::vector<MemoryMapping> mappings_of(const std::vector<MemoryMapping>& all, std::uint64_t begin,
                                       std::uint64_t size) {
  std::vector<MemoryMapping> found;
  std::uint64_t reached = begin;
  for (const MemoryMapping& mapping : all) {
    if (mapping.end <= reached) continue;
    if (mapping.begin > reached || !mapping.readable) return {};
    found.push_back(mapping);
    reached = mapping.end;
    if (reached - begin >= size) return found;
  }
  return {};
}

/// Where in a file what is mapped there lies, when it is one piece of one file that is shared.
struct FilePosition {
  std::uint64_t device = 0, inode = 0, offset = 0;
};

std::optional<FilePosition> file_position(const std::vector<MemoryMapping>& mappings,
                                          std::uint64_t begin) {
  const MemoryMapping& first = mappings.front();
  for (const MemoryMapping& mapping : mappings) {
    if (!mapping.shared || mapping.inode == 0 || mapping.inode != first.inode ||
        mapping.device != first.device ||
        mapping.offset - first.offset != mapping.begin - first.begin) {
      return std::nullopt;
    }
  }
  return FilePosition{first.device, first.inode, first.offset + (begin - first.begin)};
}

bool is_file(int fd, const FilePosition& position, std::uint64_t size) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_dev == position.device &&
         info.st_ino == position.inode && size <= static_cast<std::uint64_t>(info.st_size) &&
         position.offset <= static_cast<std::uint64_t>(info.st_size) - size;
}

/// The file as the process has it open; empty when it has it open no more, or not for us. `access`:
/// O_RDWR or O_RDONLY.
UniqueFd open_file_of(const HostProcess& process, const FilePosition& position, std::uint64_t size,
                      int access) {
  const auto descriptors = process.descriptors();
  if (!descriptors) return {};
  for (const HostProcess::Descriptor& descriptor : *descriptors) {
    const std::string path = process.path(fmt::format("fd/{}", descriptor.number));
    struct stat info {};
    // Looked at before it is opened: to open what is no file of memory can have effects.
    if (stat(path.c_str(), &info) != 0 || info.st_dev != position.device ||
        info.st_ino != position.inode) {
      continue;
    }
    UniqueFd file(open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK));
    if (file && is_file(file.get(), position, size)) return file;
  }
  return {};
}

/// A file that its owner can shrink must not be mapped: our next look would be a SIGBUS.
bool keeps_its_size(int file) {
  const int seals = fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

/// hugetlbfs has no write(2).
bool can_be_written(int file) {
  struct statfs info {};
  return fstatfs(file, &info) == 0 && info.f_type != HUGETLBFS_MAGIC;
}

}  // namespace

Result<std::unique_ptr<MonitoredRam>> MonitoredRam::find(Monitor& monitor, pid_t pid,
                                                         Access access) {
  std::unique_ptr<MonitoredRam> ram(new MonitoredRam(monitor, pid, access));
  TRY(ram->set_up());
  return ram;
}

MonitoredRam::~MonitoredRam() {
  for (const std::span<std::byte> mapping : mappings_) munmap(mapping.data(), mapping.size());
}

Result<void> MonitoredRam::set_up() {
  plug_window_ = TRY(read_plug_window(TRY(monitor_.human("info mtree"))));
  const std::vector<HostPiece> pieces = TRY(locate());
  auto opened = ProcessMemory::open(pid_, pieces.front().host).map_error([this](Error found) {
    return explain_unreadable(HostProcess(pid_), std::move(found));
  });
  if (!opened && access_ == Access::Write) return tl::make_unexpected(std::move(opened).error());
  if (opened) process_ = std::move(*opened);
  if (opened && access_ == Access::Read) process_ = std::make_shared<ReadOnlyBytes>(process_);
  TRY(check_mapped(pieces));
  for (const HostPiece& piece : pieces) {
    if (is_pluggable(piece)) continue;
    if (TRY(back(piece, backed_))) continue;
    if (!opened) return tl::make_unexpected(std::move(opened).error());
    backed_.copied.push_back({piece.base, piece.size, process_, piece.host});
  }
  if (plug_window_) {
    if (!opened) return tl::make_unexpected(std::move(opened).error());
    plugged_ = std::make_shared<PluggedMemory>(process_);
    backed_.copied.push_back(
        {plug_window_->base, plug_window_->size, plugged_, plug_window_->base.raw()});
    TRY(set_plugged(pieces));
  }
  memory_ = GuestMemory::of(backed_.mapped, backed_.copied);
  return {};
}

Result<void> MonitoredRam::add(GuestMemory::Extent place, const std::string& backend) {
  HostPiece piece;
  piece.base = place.base;
  piece.size = place.size;
  piece.host = TRY(ask(place.base, backend));
  const std::uint64_t last = TRY(ask(place.base.wrapping_add(place.size - kPageSize), backend));
  if (last - piece.host != place.size - kPageSize || memory_.is_ram(place.base, 1)) {
    return fail(
        ErrorCode::Invalid,
        fmt::format("QEMU's addresses of the memory that was plugged in at {:#x} do not agree",
                    place.base.raw()));
  }
  if (!TRY(back(piece, backed_))) {
    backed_.copied.push_back({piece.base, piece.size, process_, piece.host});
  }
  memory_ = GuestMemory::of(backed_.mapped, backed_.copied);
  return {};
}

/// The host address of a byte of the guest's.
Result<std::uint64_t> MonitoredRam::ask(GuestPhys at, const std::string& backend) const {
  return read_host_address(TRY(monitor_.human(fmt::format("gpa2hva {:#x}", at.raw()))), backend);
}

/// Asks for the host address of each piece's first and last page; they must agree with each other
/// and with those of its backend's other pieces.
Result<std::vector<MonitoredRam::HostPiece>> MonitoredRam::locate() {
  const nlohmann::json memdevs = TRY(monitor_.execute("query-memdev"));
  const std::string tree = TRY(monitor_.human("info mtree -f"));
  const MemoryMap map = TRY(read_memory_map(memdevs, tree));
  TRY(check_window(map));
  std::vector<std::uint64_t> bases(map.backends.size(), 0);
  std::vector<HostPiece> pieces;
  for (const MappedPiece& piece : map.pieces) {
    const std::string& backend = map.backends[piece.backend].name;
    const std::uint64_t first = TRY(ask(piece.base, backend));
    const std::uint64_t last = TRY(ask(piece.base.wrapping_add(piece.size - kPageSize), backend));
    const std::uint64_t base = first - piece.offset;
    std::uint64_t& known = bases[piece.backend];
    if (first < piece.offset || last - first != piece.size - kPageSize ||
        first > UINT64_MAX - piece.size || (known != 0 && known != base)) {
      return fail(ErrorCode::Invalid,
                  fmt::format("QEMU's addresses of the guest's memory at {:#x} do not agree",
                              piece.base.raw()));
    }
    known = base;
    pieces.push_back({piece, first});
  }
  return pieces;
}

/// Whether a piece of RAM can be all of these: what QEMU cannot write itself is no RAM to trace in.
bool MonitoredRam::is_fit(const std::vector<MemoryMapping>& mappings) const {
  return !mappings.empty() &&
         (access_ == Access::Read || std::ranges::all_of(mappings, &MemoryMapping::writable));
}

/// Whether the process has memory there, and no two pieces the same.
Result<void> MonitoredRam::check_mapped(const std::vector<HostPiece>& pieces) const {
  std::vector<HostPiece> by_host = pieces;
  std::ranges::sort(by_host, {}, &HostPiece::host);
  const HostProcess process(pid_);
  const std::vector<MemoryMapping> all = TRY(process.mappings().map_error(
      [&](Error found) { return explain_unreadable(process, std::move(found)); }));
  for (std::size_t i = 0; i < by_host.size(); ++i) {
    const bool overlaps = i > 0 && by_host[i].host - by_host[i - 1].host < by_host[i - 1].size;
    if (overlaps || !is_fit(mappings_of(all, by_host[i].host, by_host[i].size))) {
      return fail(ErrorCode::Invalid,
                  fmt::format("process {} has no memory of its own for the guest's at {:#x}", pid_,
                              by_host[i].base.raw()));
    }
  }
  return {};
}

/// The best way to a piece of RAM that is in a file; false when it is in none, or not for us. Who
/// reads copies: a mapping that can be written is not given to him.
Result<bool> MonitoredRam::back(const HostPiece& piece, Backed& backed) {
  const HostProcess process(pid_);
  const std::vector<MemoryMapping> all = TRY(process.mappings());
  const std::vector<MemoryMapping> mappings = mappings_of(all, piece.host, piece.size);
  if (!is_fit(mappings)) return fail(ErrorCode::Io, "the guest's memory went away");
  const auto position = file_position(mappings, piece.host);
  if (!position) return false;
  const bool writes = access_ == Access::Write;
  UniqueFd file = open_file_of(process, *position, piece.size, writes ? O_RDWR : O_RDONLY);
  if (writes && file && keeps_its_size(file.get())) {
    void* mapped = mmap(nullptr, piece.size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(),
                        static_cast<off_t>(position->offset));
    if (mapped != MAP_FAILED) {
      mappings_.push_back({static_cast<std::byte*>(mapped), piece.size});
      backed.mapped.push_back({piece.base, mappings_.back(), file.get(), position->offset});
      files_.push_back(std::move(file));
      return true;
    }
  }
  if (!file || (writes && !can_be_written(file.get()))) return false;
  auto bytes = std::make_shared<FileMemory>(std::move(file));
  backed.copied.push_back({piece.base, piece.size, std::move(bytes), position->offset});
  return true;
}

/// A piece lies in the window or outside.
Result<void> MonitoredRam::check_window(const MemoryMap& map) const {
  if (!plug_window_) return {};
  const std::uint64_t begin = plug_window_->base.raw(), end = begin + plug_window_->size;
  for (const MappedPiece& piece : map.pieces) {
    const std::uint64_t from = piece.base.raw(), to = from + piece.size;
    const bool inside = from >= begin && to <= end, outside = to <= begin || from >= end;
    if (inside || outside) continue;
    return fail(ErrorCode::Invalid,
                fmt::format("QEMU has memory at {:#x} that is half plugged in", from));
  }
  return {};
}

bool MonitoredRam::is_pluggable(const MappedPiece& piece) const {
  return plug_window_ && piece.base.is_in(plug_window_->base, plug_window_->size);
}

Result<void> MonitoredRam::set_plugged(const std::vector<HostPiece>& pieces) {
  std::vector<PluggedMemory::Block> blocks;
  for (const HostPiece& piece : pieces) {
    if (is_pluggable(piece)) blocks.push_back({piece.base.raw(), piece.size, piece.host});
  }
  if (plugged_->set(std::move(blocks))) return {};
  return fail(ErrorCode::Limit, "memory was plugged in and out too often");
}

Result<void> MonitoredRam::look_again() {
  if (!plugged_) return {};
  const std::lock_guard lock(mutex_);
  const auto pieces = [&]() -> Result<std::vector<HostPiece>> {
    std::vector<HostPiece> found = TRY(locate());
    TRY(check_mapped(found));
    return found;
  }();
  if (pieces) return set_plugged(*pieces);
  (void)plugged_->set({});
  return Unexpected<Error>(pieces.error());
}

}  // namespace ringside::vmm
