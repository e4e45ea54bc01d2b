// In this file, top to bottom: reading and opening files, which build one is, looking for one, what
// is told.
#include "vmm/linux/processes/host_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "vmm/arch/arch.h"
#include "vmm/base/printable.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostTold = 64;
constexpr std::string_view kDebugFolder = "usr/lib/debug/.build-id/";

UniqueFd open_below(int folder, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

/// "ab/cdef01.debug"
std::string debug_path(std::string_view build_id) {
  std::string text = hex(build_id);
  return std::string(kDebugFolder) + text.insert(2, "/") + ".debug";
}

std::string build_text(std::string_view build_id) {
  return build_id.empty() ? "no build id" : "build id " + hex(build_id);
}

bool has_same_first_page(const FileBytes& one, const FileBytes& other) {
  std::array<std::byte, arch::kPageSize> first{}, second{};
  const std::size_t whole = std::min<std::uint64_t>(one.size(), first.size());
  return one.size() == other.size() && one.read(0, first) == whole &&
         other.read(0, second) == whole && first == second;
}

}  // namespace

std::size_t HostFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset >= size_) return 0;
  out = out.first(std::min<std::uint64_t>(out.size(), size_ - offset));
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count =
        ::pread(fd_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Result<std::unique_ptr<HostFiles>> HostFiles::open(Options options) {
  std::unique_ptr<HostFiles> made(new HostFiles(std::move(options)));
  if (made->options_.uses_servers) made->servers_ = std::make_unique<Debuginfod>();
  for (std::string name : made->options_.sysroots) {
    UniqueFd folder(::open(name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) {
      return fail(ErrorCode::NotFound, fmt::format("--sysroot {}: {}", name, std::strerror(errno)));
    }
    if (!open_below(folder.get(), ".")) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("--sysroot {}: files in it cannot be opened safely: openat2(2): {}",
                              name, std::strerror(errno)));
    }
    while (name.size() > 1 && name.ends_with('/')) name.pop_back();
    made->roots_.push_back({std::move(name), std::move(folder)});
  }
  return made;
}

/// Opened by its path first: to open a device may already do something.
Result<HostFile> HostFiles::open_in(const Root& root, std::string_view path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  const auto problem = [&root, path](int error) {
    const std::string shown = printable(path);
    return error == ENOENT || error == ENOTDIR
               ? fail(ErrorCode::NotFound, fmt::format("{} has no {}", root.name, shown))
               : fail(ErrorCode::Io,
                      fmt::format("{}/{}: {}", root.name, shown, std::strerror(error)));
  };
  const UniqueFd place = open_below(root.folder.get(), std::string(path));
  if (!place) return problem(errno);
  struct stat about {};
  if (::fstat(place.get(), &about) != 0) return problem(errno);
  std::string name = fmt::format("{}/{}", root.name, printable(path));
  if (!S_ISREG(about.st_mode)) {
    return fail(ErrorCode::Invalid, name + " is no regular file");
  }
  UniqueFd file(::open(fmt::format("/proc/self/fd/{}", place.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return problem(errno);
  return HostFile(std::move(file), static_cast<std::uint64_t>(about.st_size), std::move(name));
}

std::string HostFiles::visit(const Wanted& wanted, const Visitor& visitor) {
  constexpr std::string_view kDeleted = " (deleted)";  // as paths of unlinked files end
  std::string_view path = wanted.path;
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return look({path, wanted.elf.build_id(), wanted.servers, &wanted}, visitor);
}

std::string HostFiles::visit(const SharedTypesLink& link, Servers servers, const Visitor& visitor) {
  const bool is_whole = link.path.starts_with('/');
  return look({is_whole ? link.path : std::string_view(), link.build_id, servers, nullptr},
              visitor);
}

std::string HostFiles::look(const Sought& sought, const Visitor& visitor) {
  std::string report;
  for (const Root& root : roots_) {
    if (!sought.path.empty() && take(open_in(root, sought.path), sought, visitor, report)) {
      return report;
    }
    if (sought.build_id.empty()) continue;
    if (take(open_in(root, debug_path(sought.build_id)), sought, visitor, report)) return report;
  }
  const bool asks = sought.servers == Servers::Asked && servers_ && !sought.build_id.empty();
  if (asks) take(ask_servers(sought), sought, visitor, report);
  return report;
}

Result<HostFile> HostFiles::ask_servers(const Sought& sought) {
  const std::string build_id(sought.build_id);
  const std::string name = "debuginfod's file of build id " + hex(build_id);
  const auto missing =
      fail(ErrorCode::NotFound, "debuginfod has none of build id " + hex(build_id));
  if (missing_.contains(build_id)) return missing;
  const std::size_t last = sought.path.rfind('/') + 1;  // 0: there is none
  options_.show(fmt::format(
      "asking debuginfod for symbols of {}",
      sought.path.empty() ? "build id " + hex(build_id) : printable(sought.path.substr(last))));
  auto file = servers_->find(build_id);
  options_.show("");
  if (!file && file.error().code == ErrorCode::NotFound) {
    missing_.insert(build_id);
    return missing;
  }
  if (!file) {
    const std::string why = "debuginfod: " + file.error().message;
    notice(why + ": it is not asked any more; names are those of the guest's memory");
    return fail(file.error().code, why);
  }
  struct stat about {};
  if (::fstat(file->get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return fail(ErrorCode::Io, name + " cannot be read");
  }
  return HostFile(std::move(*file), static_cast<std::uint64_t>(about.st_size), name);
}

bool HostFiles::take(Result<HostFile> file, const Sought& sought, const Visitor& visitor,
                     std::string& report) {
  const auto leave = [&report](const std::string& why) {
    report += "; " + why;
    return false;
  };
  if (!file) return leave(file.error().message);
  const Wanted* const guests = sought.in_guest;
  const auto elf = guests != nullptr ? FileElf::read(*file) : FileElf::read_shared_types(*file);
  if (!elf) {
    return leave(file->name() + (guests != nullptr ? " is no program or library for x86-64"
                                                   : " has no types that others share"));
  }
  if (guests != nullptr && guests->elf.hides_build_id()) {
    return leave(
        fmt::format("{} is not used, because the file's build id is not in the guest's "
                    "memory",
                    file->name()));
  }
  const bool is_same = sought.build_id.empty() ? elf->build_id().empty() && guests != nullptr &&
                                                     has_same_first_page(*file, guests->file)
                                               : elf->build_id() == sought.build_id;
  if (is_same) return visitor({*file, *elf});
  const std::string why =
      sought.build_id.empty() && elf->build_id().empty()
          ? file->name() + " is another version: its size or its first page differs"
          : fmt::format("{} is another version: it has {}, and {} {}", file->name(),
                        build_text(elf->build_id()),
                        guests != nullptr ? "the guest's file" : "the link to it",
                        build_text(sought.build_id));
  notice(why + ": it is not used");
  return leave(why);
}

void HostFiles::note_search(std::string_view file, std::string_view searched) {
  if (options_.is_verbose) notice(fmt::format("{}: {}", file, searched));
}

void HostFiles::notice(std::string text) {
  if (told_.size() >= kMostTold || !told_.insert(text).second) return;
  notices_.push_back(std::move(text));
  if (told_.size() == kMostTold) {
    notices_.emplace_back("of further files it is not told where symbols were looked for");
  }
}

}  // namespace ringside::guest_linux
