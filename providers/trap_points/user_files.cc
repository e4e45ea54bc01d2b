#include "providers/trap_points/user_files.h"

#include <utility>

#include "vmm/linux/layout.h"

namespace ringside::providers {

using guest_linux::FilePages;

UserFiles::UserFiles(vmm::GuestMemory& memory, const guest_linux::Kernel& kernel,
                     guest_linux::HostFiles* host)
    : memory_(memory),
      kernel_(kernel),
      host_(host),
      layout_(guest_linux::PageCacheLayout::from(kernel.types(), kernel.symbols())),
      writers_(guest_linux::offset_of(kernel.types(), "inode", {"i_writecount", "counter"})),
      inode_super_(guest_linux::offset_of(kernel.types(), "inode", {"i_sb"})),
      super_devices_(guest_linux::offset_of(kernel.types(), "super_block", {"s_bdi"})) {
  const auto* const none = kernel.symbols().find("noop_backing_dev_info", "vmlinux");
  if (none != nullptr) no_devices_ = none->address;
  const auto* const swap = kernel.symbols().find("total_swap_pages", "vmlinux");
  if (swap != nullptr) swap_pages_ = swap->address;
}

vmm::PageTableReader UserFiles::reader() const {
  return {memory_, kernel_.table()};
}

std::optional<FilePages> UserFiles::pages_of(const GuestReader& kernel, GuestVirt inode) const {
  if (!layout_) return std::nullopt;
  return FilePages::of_inode(memory_, kernel, *layout_, inode);
}

bool UserFiles::is_written_to(const GuestReader& kernel, GuestVirt inode) const {
  const auto writers = guest_linux::load_field<std::int32_t>(kernel, inode, *writers_);
  return !writers || *writers > 0;
}

/// Files of ramfs and the like have none: their pages are never clean, and never written anywhere.
bool UserFiles::has_disk(const GuestReader& kernel, GuestVirt inode) const {
  const auto super = guest_linux::load_field<std::uint64_t>(kernel, inode, *inode_super_);
  const auto devices =
      super ? guest_linux::load_field<std::uint64_t>(kernel, GuestVirt(*super), *super_devices_)
            : Unexpected<Fault>(super.error());
  return !devices || GuestVirt(*devices) != no_devices_;
}

bool UserFiles::may_be_swapped(const GuestReader& kernel, GuestVirt inode) const {
  if (!swap_pages_) return false;  // a kernel without swap
  if (has_disk(kernel, inode)) return false;
  const auto pages = load<std::uint64_t>(kernel, *swap_pages_);
  return !pages || *pages != 0;
}

void UserFiles::set_path(GuestVirt inode, std::string path) {
  paths_[inode] = std::move(path);
}

const std::string& UserFiles::path_of(GuestVirt inode) const {
  static const std::string none;
  const auto known = paths_.find(inode);
  return known != paths_.end() ? known->second : none;
}

UserFile UserFiles::read(const FilePages& pages, Servers servers) const {
  return {
      .identity = pages.identity(),
      .functions = guest_linux::FileFunctions::read(pages, host_, path_of(pages.inode()), servers),
      .servers = servers};
}

std::span<const guest_linux::StaticProbe> UserFiles::static_probes_of(GuestVirt inode,
                                                                      Servers servers) {
  const auto kernel = reader();
  const auto pages = pages_of(kernel, inode);
  if (!pages) return {};
  StaticProbes& known = static_probes_[inode];
  const bool is_new = servers == Servers::Asked && known.servers == Servers::NotAsked;
  if (known.identity != pages->identity() || is_new) {
    const auto elf = guest_linux::FileElf::read(*pages);
    known = {pages->identity(), {}, servers};
    if (elf) {
      known.probes = guest_linux::read_static_probes(*pages, *elf, host_, path_of(inode), servers);
    }
  }
  return known.probes;
}

Result<guest_linux::DwarfTypes> UserFiles::read_types(GuestVirt inode, Servers servers) const {
  const auto kernel = reader();
  const auto pages = pages_of(kernel, inode);
  const auto elf = pages ? guest_linux::FileElf::read(*pages) : std::nullopt;
  if (!elf) return fail(ErrorCode::Unsupported, "the file's headers are not in memory");
  return guest_linux::DwarfTypes::find({*pages, *elf, path_of(inode), servers}, host_);
}

Result<guest_linux::FunctionTypes> UserFiles::types_of(UserFile& file,
                                                       const guest_linux::FileFunction& function,
                                                       TypeGraph& graph) const {
  const auto address = file.functions.address_of(function.offset);
  if (!address) return fail(ErrorCode::Unsupported, "the function is no text of the file");
  if (!file.types) file.types.emplace(read_types(GuestVirt(file.identity.inode), file.servers));
  if (!*file.types) return tl::make_unexpected(file.types->error());
  return (*file.types)->function_at(address->raw(), function.name, graph);
}

std::optional<guest_linux::FilePiece> UserFiles::piece_at(UserFile& file,
                                                          std::uint64_t offset) const {
  const auto kernel = reader();
  const auto pages = pages_of(kernel, GuestVirt(file.identity.inode));
  if (!pages) return std::nullopt;
  if (!file.pieces) file.pieces = guest_linux::FilePieces::read(*pages);
  return file.pieces ? file.pieces->at(*pages, offset) : std::nullopt;
}

/// A page that is to be written to the disk would take our int3 along.
Result<void> UserFiles::check_page(const FilePages& pages, std::uint64_t page) const {
  const auto kernel = reader();
  if (!writers_ || !inode_super_ || !super_devices_ || !no_devices_) {
    return fail(ErrorCode::Unsupported, "the kernel's types do not tell whose files are written");
  }
  if (is_written_to(kernel, pages.inode())) {
    return fail(ErrorCode::Unsupported, "somebody in the guest has the file open to write to it");
  }
  if (may_be_swapped(kernel, pages.inode())) {
    return fail(
        ErrorCode::Unsupported,
        "the file is in memory alone (tmpfs), and the guest may swap it out with the probe: "
        "turn swap off in the guest (swapoff -a)");
  }
  if (pages.is_unsaved(page) && has_disk(kernel, pages.inode())) {
    return fail(ErrorCode::Unsupported,
                "its page is not on the guest's disk yet: run sync in the guest, and try again");
  }
  return {};
}

}  // namespace ringside::providers
