#include "vmm/process_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "vmm/base/pidfd.h"
#include "vmm/pagemap.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kMostParts = 64;  // of one system call

/// One call's worth of parts.
bool read_some(pid_t pid, std::span<const CopyPart> parts) {
  std::array<iovec, kMostParts> here, there;
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    here[i] = {parts[i].out.data(), parts[i].out.size()};
    // SAFETY: an address of the other process, which the kernel checks; never followed here.
    there[i] = {reinterpret_cast<void*>(parts[i].offset), parts[i].out.size()};
    wanted += parts[i].out.size();
  }
  const ssize_t got =
      process_vm_readv(pid, here.data(), parts.size(), there.data(), parts.size(), 0);
  return got >= 0 && static_cast<std::size_t>(got) == wanted;
}

/// By its pidfd: the number of a process that has ended is given to others.
bool has_ended(int process) {
  pollfd ended{process, POLLIN, 0};
  return poll(&ended, 1, 0) != 0;
}

}  // namespace

Result<std::unique_ptr<ProcessMemory>> ProcessMemory::open(pid_t pid, std::uint64_t somewhere) {
  UniqueFd process(open_pidfd(pid));
  if (!process) {
    return fail(ErrorCode::NotFound,
                fmt::format("there is no process {}: {}", pid, std::strerror(errno)));
  }
  std::byte probe;
  const CopyPart part{somewhere, std::span(&probe, 1)};
  if (!read_some(pid, std::span(&part, 1))) {
    return fail(ErrorCode::Io,
                fmt::format("the memory of process {} cannot be read: {}; be its user, with "
                            "kernel.yama.ptrace_scope at 0, or have CAP_SYS_PTRACE",
                            pid, std::strerror(errno)));
  }
  UniqueFd memory(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDWR | O_CLOEXEC));
  if (has_ended(process.get())) {
    return fail(ErrorCode::NotFound, fmt::format("process {} has ended", pid));
  }
  UniqueFd pagemap(::open(fmt::format("/proc/{}/pagemap", pid).c_str(), O_RDONLY | O_CLOEXEC));
  return std::unique_ptr<ProcessMemory>(
      new ProcessMemory(pid, std::move(process), std::move(memory), std::move(pagemap)));
}

bool ProcessMemory::read(std::span<const CopyPart> parts) const {
  if (parts.size() == 1 && by_file(parts[0].out.size())) {
    const std::span<std::byte> out = parts[0].out;
    const ssize_t got =
        pread(memory_.get(), out.data(), out.size(), static_cast<off_t>(parts[0].offset));
    return got >= 0 && static_cast<std::size_t>(got) == out.size();
  }
  while (!parts.empty()) {
    const std::size_t now = std::min(parts.size(), kMostParts);
    if (!read_some(pid_, parts.first(now))) return false;
    parts = parts.subspan(now);
  }
  return true;
}

bool ProcessMemory::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (by_file(bytes.size())) {
    const ssize_t put =
        pwrite(memory_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    return put >= 0 && static_cast<std::size_t>(put) == bytes.size();
  }
  if (has_ended(process_.get())) return false;
  // SAFETY: read only; iovec has no form for that. The other address the kernel checks.
  const iovec here{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const iovec there{reinterpret_cast<void*>(offset), bytes.size()};
  const ssize_t put = process_vm_writev(pid_, &here, 1, &there, 1, 0);
  return put >= 0 && static_cast<std::size_t>(put) == bytes.size();
}

/// Whether /proc/PID/maps has all of it as memory of which only pages that pagemap shows need
/// looking at: memory without a file, where any other page is zero, and shared memory, where
/// reading any other would make it. Layout: proc(5).
bool ProcessMemory::tells_pages(ByteExtent of) const {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid_));
  std::uint64_t reached = of.offset;
  for (std::string line; std::getline(maps, line) && reached < of.offset + of.size;) {
    std::uint64_t begin = 0, end = 0, inode = 0;
    char sharing = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*3c%c %*x %*x:%*x %" SCNu64, &begin,
                    &end, &sharing, &inode) != 4) {
      return false;
    }
    if (end <= reached) continue;
    if (begin > reached || (sharing == 'p' && inode != 0)) return false;
    reached = end;
  }
  return reached >= of.offset + of.size;
}

std::vector<ByteExtent> ProcessMemory::extents(ByteExtent of) const {
  if (!pagemap_ || of.size == 0 || !tells_pages(of)) return {of};
  if (auto scanned = scan_pagemap(pagemap_.get(), of)) return std::move(*scanned);
  std::ifstream smaps(fmt::format("/proc/{}/smaps", pid_));
  const std::string text{std::istreambuf_iterator<char>(smaps), {}};
  if (auto found = read_pagemap(pagemap_.get(), text, of)) return std::move(*found);
  return {of};
}

}  // namespace ringside::vmm
