// Files of the host that are copies of files of the guest, or were split off them for debuggers:
// symbols, unwind tables and notes that are not in the guest's memory are read from them. They are
// looked for in folders of the user's (--sysroot DIR), as
//   DIR/usr/bin/x                                   by the file's path in the guest
//   DIR/usr/lib/debug/.build-id/ab/cdef01.debug     by its build id
//   DIR/usr/lib/debug/.dwz/x.debug                  by the link of a file that shares its types
// and then, by the build id, on servers that the user has named (debuginfod.h).
// A path of the guest's is the guest's choice, and links in DIR may be anybody's: nothing outside
// of DIR is opened (openat2(2), RESOLVE_IN_ROOT, Linux 5.6), and nothing but regular files. Only
// the same build is taken: it has the build id that the file has in the guest's memory. A file
// without one is taken if its size and its first page are the same; that page has the place and
// size of all its parts. Another build is told, once.
// The host's files are trusted no more than the guest's: the same readers check them.
// Used by FileFunctions and what reads static probes and unwind tables. Threads: the session's.
// Fire context: unwind_tables() yes, the rest no.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/linux/processes/debuginfod.h"
#include "vmm/linux/processes/dwarf_image.h"
#include "vmm/linux/processes/file_bytes.h"
#include "vmm/linux/processes/file_elf.h"
#include "vmm/linux/processes/host_unwind_tables.h"

namespace ringside::guest_linux {

/// A regular file that is open. One that gets shorter meanwhile ends where it is read.
class HostFile final : public FileBytes {
 public:
  /// `name`: as messages call it.
  HostFile(UniqueFd fd, std::uint64_t size, std::string name)
      : fd_(std::move(fd)), size_(size), name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  std::uint64_t size() const override { return size_; }
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  UniqueFd fd_;
  std::uint64_t size_;
  std::string name_;
};

class HostFiles {
 public:
  struct Options {
    std::vector<std::string> sysroots{};  // folders, looked in one after the other
    bool uses_servers = false;            // those that debuginfod.h asks
    bool is_verbose = false;              // take_notices() has where functions were found, too
    /// Shows what a user waits for; "" when that is over.
    std::function<void(const std::string&)> show = [](const std::string&) {};
  };
  /// NotFound, for a folder that is not there; Unsupported where the host's kernel cannot keep
  /// links in it.
  static Result<std::unique_ptr<HostFiles>> open(Options options);

  /// Whether there is any place to look in.
  bool any() const { return !roots_.empty() || servers_; }

  /// Whether servers are asked, which may take a minute.
  enum class Servers : std::uint8_t { NotAsked, Asked };
  bool has_servers() const { return servers_ != nullptr; }

  /// A file of the guest.
  struct Wanted {
    const FileBytes& file;  // as the guest has it in memory
    const FileElf& elf;     // of it
    std::string_view path;  // there; empty: not known
    Servers servers = Servers::NotAsked;
  };
  struct Copy {
    const HostFile& file;
    const FileElf& elf;  // of it
  };
  /// True: it was enough.
  using Visitor = std::function<bool(const Copy&)>;
  /// Visits the host's copies of the same build, until one is enough. Returns where there was none,
  /// and why, for a report: "; /srv/root has no usr/bin/x". Good until it returns: what a visitor
  /// gets.
  std::string visit(const Wanted& wanted, const Visitor& visitor);
  /// The same for the file with which a copy shares its types. A link's path that begins at the
  /// copy's folder is not followed: build ids lead there, too.
  std::string visit(const SharedTypesLink& link, Servers servers, const Visitor& visitor);

  /// For walks of stacks, which cannot wait for a file.
  HostUnwindTables& unwind_tables() { return unwind_tables_; }

  /// Functions of a file were looked for: a line for who asked for all (is_verbose), once.
  void note_search(std::string_view file, std::string_view searched);
  /// Since the last call; a line each.
  std::vector<std::string> take_notices() { return std::exchange(notices_, {}); }

 private:
  struct Root {
    std::string name;
    UniqueFd folder;
  };
  explicit HostFiles(Options options) : options_(std::move(options)) {}
  /// The error's message says why there is none.
  static Result<HostFile> open_in(const Root& root, std::string_view path);
  /// A file that is looked for, as the guest names it.
  struct Sought {
    std::string_view path, build_id;  // empty: not known
    Servers servers;
    const Wanted* in_guest;  // null: the guest has no such file
  };
  std::string look(const Sought& sought, const Visitor& visitor);
  Result<HostFile> ask_servers(const Sought& sought);
  bool take(Result<HostFile> file, const Sought& sought, const Visitor& visitor,
            std::string& report);
  void notice(std::string text);

  const Options options_;
  std::vector<Root> roots_;
  std::unique_ptr<Debuginfod> servers_;  // null: none are asked
  std::set<std::string> missing_;        // build ids that no server has
  HostUnwindTables unwind_tables_;
  std::set<std::string> told_;
  std::vector<std::string> notices_;
};

}  // namespace ringside::guest_linux
