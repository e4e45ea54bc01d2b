// Files with code that processes map, as the host finds them in the guest: their pages in memory,
// functions, static probes, types and pieces of code, and whether a byte of ours in a page could
// reach a disk. Symbols and types are also looked for on the host (host_files.h).
// Used by the table of trap points in such files. Does not: know trap points, or write. Hostile
// input: files are the guest's.
// Threads: one at a time. Fire context: no.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/processes/dwarf_types.h"
#include "vmm/linux/processes/file_functions.h"
#include "vmm/linux/processes/file_pieces.h"
#include "vmm/linux/processes/host_files.h"
#include "vmm/linux/processes/page_cache.h"
#include "vmm/linux/processes/static_probes.h"
#include "vmm/page_walk.h"

namespace ringside::providers {

/// A file, as far as it was read.
struct UserFile {
  guest_linux::FileIdentity identity;
  guest_linux::FileFunctions functions;
  std::optional<guest_linux::FilePieces> pieces{};         // once they were asked for
  std::optional<Result<guest_linux::DwarfTypes>> types{};  // likewise
  guest_linux::HostFiles::Servers servers =                // for the functions
      guest_linux::HostFiles::Servers::NotAsked;
};

class UserFiles {
 public:
  using Servers = guest_linux::HostFiles::Servers;

  /// All must outlive it. `host`: where else symbols of files are looked for; null: nowhere.
  UserFiles(vmm::GuestMemory& memory, const guest_linux::Kernel& kernel,
            guest_linux::HostFiles* host);

  /// Null: none.
  guest_linux::HostFiles* host() const { return host_; }
  /// Of the kernel's memory.
  vmm::PageTableReader reader() const;
  /// Empty: the file cannot be found in the guest's memory. `kernel` must outlive the result.
  std::optional<guest_linux::FilePages> pages_of(const GuestReader& kernel, GuestVirt inode) const;

  /// Whether somebody has the file open to write to it. Only after check_page() was content.
  bool is_written_to(const GuestReader& kernel, GuestVirt inode) const;
  /// Whether its pages are of a disk.
  bool has_disk(const GuestReader& kernel, GuestVirt inode) const;
  /// Whether they are in memory alone (tmpfs), and the guest has swap, to which they may go.
  bool may_be_swapped(const GuestReader& kernel, GuestVirt inode) const;
  /// Unsupported, with the reason, if a byte of ours in this page of the file might reach a disk.
  Result<void> check_page(const guest_linux::FilePages& pages, std::uint64_t page) const;

  /// Where the file is in the guest, by which the host's copies are found.
  void set_path(GuestVirt inode, std::string path);
  /// Its functions, as far as they are found now.
  UserFile read(const guest_linux::FilePages& pages, Servers servers) const;
  /// None where the file cannot be read. Good until the next call.
  std::span<const guest_linux::StaticProbe> static_probes_of(GuestVirt inode, Servers servers);
  /// Types of a function of the file by its DWARF, which is read when it is asked for first; they
  /// are added to `graph`, the same one in every call. The error says why there are none.
  Result<guest_linux::FunctionTypes> types_of(UserFile& file,
                                              const guest_linux::FileFunction& function,
                                              TypeGraph& graph) const;
  /// The piece of code that has this byte of the file, by its unwind table.
  std::optional<guest_linux::FilePiece> piece_at(UserFile& file, std::uint64_t offset) const;

 private:
  const std::string& path_of(GuestVirt inode) const;
  Result<guest_linux::DwarfTypes> read_types(GuestVirt inode, Servers servers) const;

  vmm::GuestMemory& memory_;
  const guest_linux::Kernel& kernel_;
  guest_linux::HostFiles* const host_;
  std::optional<guest_linux::PageCacheLayout> layout_;
  std::optional<std::uint32_t> writers_;                      // inode.i_writecount
  std::optional<std::uint32_t> inode_super_, super_devices_;  // i_sb, s_bdi
  std::optional<GuestVirt> no_devices_;                       // noop_backing_dev_info
  std::optional<GuestVirt> swap_pages_;                       // total_swap_pages
  std::map<GuestVirt, std::string> paths_;                    // in the guest, by inode
  struct StaticProbes {
    guest_linux::FileIdentity identity;
    std::vector<guest_linux::StaticProbe> probes;
    Servers servers = Servers::NotAsked;
  };
  std::map<GuestVirt, StaticProbes> static_probes_;  // by inode
};

}  // namespace ringside::providers
