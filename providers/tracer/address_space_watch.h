// Keeps what processes have mapped until all traps have fired that were recorded before, and whose
// clauses follow a process's stack. A record has the stack (vmm/shim/fetch_list.h), but neither the
// mappings of the code that it leads to nor its unwind tables. Those are read when the trap fires,
// so they have to be there still. A trap that waits fires after all that was recorded before it
// (providers/fire/replay.h), and these do:
//   exit_mmap(struct mm_struct *) (mm/mmap.c): a process ends, or runs another program
//   vms_gather_munmap_vmas(struct vma_munmap_struct *, ...) (mm/vma.c, since 6.12), before it
//   do_vmi_align_munmap(..., struct vm_area_struct *, ...) or
//   do_mas_align_munmap(..., struct vm_area_struct *, ...) (mm/mmap.c): a range is unmapped, by
//     munmap() or since something else is mapped there. The stub lets a range go at once whose
//     first mapping is of no file: memory that programs give back, and not the code of a library
// Used by the trace of a running kernel, where such traps are recorded.
// Does not: see a file's mapping go behind one of no file in the same call, or moved (mremap()).
// Threads: the session's. Fire context: no.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "providers/trap_points/trap_point_table.h"
#include "vmm/linux/kernel.h"
#include "vmm/shim/fetch_list.h"
#include "vmm/shim/trap.h"

namespace ringside::providers {

class AddressSpaceWatch final : public vmm::TrapWatch {
 public:
  /// Makes its own trap points, before any is armed. Unsupported, with the reason, where one cannot
  /// stand. `table` must outlive it.
  static Result<AddressSpaceWatch> prepare(TrapPointTable& table,
                                           const guest_linux::Kernel& kernel);
  /// Nothing needs it after all.
  void give_up();
  /// From now on the traps at its places are known to be its own.
  void add_to(vmm::TrapHandlers& handlers);
  /// Lists by which the guest lets some go on at once, by place.
  std::map<GuestVirt, vmm::FetchList> lists() const;
  bool is_place(GuestVirt at) const { return at == end_ || at == unmap_; }

 private:
  /// Where a function finds the first mapping of its range.
  struct Unmapping {
    std::uint16_t source = 0;            // a word of the record that leads there,
    std::optional<std::uint32_t> range;  // in struct vma_munmap_struct; empty: it is the mapping
    std::uint32_t file = 0;              // in struct vm_area_struct
  };

  explicit AddressSpaceWatch(TrapPointTable& table) : table_(&table) {}
  Result<void> watch_end(const guest_linux::Kernel& kernel);
  Result<void> watch_unmapping(const guest_linux::Kernel& kernel);

  TrapPointTable* table_;
  GuestVirt end_, unmap_;
  Unmapping unmapping_;
};

}  // namespace ringside::providers
