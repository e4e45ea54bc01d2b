// Keeps trap points of processes out of the guest's files. A file with such points has our int3s in
// the pages that the kernel has of it. Before the guest reads those pages as a file, or opens the
// file to write to it, they are taken out: else a copy, or the disk, would get them.
// Places:
//   do_dentry_open(struct file *, ...) (fs/open.c): all files are opened by it; the mode and the
//     path are known, the file is not open yet. Before 6.8 the second argument is the struct inode,
//     and overlayfs opens files below it by paths of its own
//   notify_change(..., struct dentry *, struct iattr *, ...) (fs/attr.c): truncation without a file
//   filemap_read(struct kiocb *, struct iov_iter *, ...) (mm/filemap.c, since 5.16) and
//   filemap_splice_read(struct file *, loff_t *, ...) (since 6.5): they copy or pass on its pages
//   shmem_file_read_iter(struct kiocb *, struct iov_iter *) (mm/shmem.c) and
//   shmem_file_splice_read(struct file *, loff_t *, ...) (since 6.5): the same of tmpfs
//   __x64_sys_swapon(), __ia32_sys_swapon(): from then on files of tmpfs may go to a disk, too
// Used by the tracer of a running kernel, where there may be such trap points.
// Threads: on_trap() on those that poll, the others on the session's. Fire context: no; on_trap()
// may pause the machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "providers/trap_points/trap_point_table.h"
#include "providers/trap_points/user_point_table.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/shim/fetch_list.h"
#include "vmm/shim/trap.h"

namespace ringside::providers {

class FileWatch final : public vmm::TrapWatch {
 public:
  /// All must outlive it.
  FileWatch(vmm::Machine& machine, guest_linux::Kernel& kernel, UserPointTable& users)
      : machine_(machine), kernel_(kernel), users_(users) {}

  /// Makes its own trap points. Unsupported, with the reason, where one cannot stand: then no file
  /// may have any.
  Result<void> prepare(TrapPointTable& table);
  /// After prepare(): from now on the traps at its places come here.
  void add_to(vmm::TrapHandlers& handlers);

  /// Lists by which the guest lets all go on at once that touches none of these files, by place;
  /// none where there are too many files.
  std::map<GuestVirt, vmm::FetchList> lists(std::span<const GuestVirt> inodes) const;
  bool is_place(GuestVirt at) const;

  void on_trap(const vmm::Trap& trap) override;

 private:
  struct Layout {
    std::uint32_t file_mode = 0, file_dentry = 0, file_inode = 0, dentry_inode = 0;
    std::uint32_t call_file = 0, call_position = 0, iterator_count = 0;  // kiocb, iov_iter
    std::uint32_t changed = 0;                                           // iattr.ia_valid
    std::optional<std::uint32_t> iterator_kind = std::nullopt;           // iov_iter.iter_type
    std::optional<std::uint8_t> pipe = std::nullopt;                     // ITER_PIPE, before 6.5
  };
  /// Bytes of a file that the guest is about to touch.
  struct Touched {
    GuestVirt inode;
    std::uint64_t begin = 0, end = UINT64_MAX;
    UserPointTable::Away away = UserPointTable::Away::ForAWhile;
  };
  std::vector<GuestVirt> places() const;
  template <class Stands, class TakeOut>
  void until_gone(Stands stands, TakeOut take_out);
  std::optional<Touched> touched_by(const vmm::Trap& trap, const GuestReader& reader) const;
  bool opens_an_inode(const guest_linux::Symbol& open) const;
  std::optional<Touched> opened(const vmm::Trap& trap, const GuestReader& reader) const;
  std::optional<Touched> read_from(const vmm::Trap& trap, const GuestReader& reader) const;
  std::optional<Touched> spliced(const vmm::Trap& trap, const GuestReader& reader) const;
  std::optional<Touched> truncated(const vmm::Trap& trap, const GuestReader& reader) const;

  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  UserPointTable& users_;
  Layout layout_;
  GuestVirt open_, change_;
  bool opens_inode_ = false;  // do_dentry_open's second argument is the struct inode
  std::vector<GuestVirt> reads_, splices_, swaps_;
};

}  // namespace ringside::providers
