// Sees to it that pages of files with trap points of processes have their int3s before a process
// can run there: pages that the guest reads from its disk for the first time, and those that it has
// given up and reads again.
// Places:
//   do_set_pte(vmf, page, address) of mm/memory.c (since 5.16), or from 6.6 on
//   set_pte_range(vmf, folio, page, nr, address): the kernel maps pages that it has of a file. No
//     process has them yet
//   __filemap_remove_folio(folio, ...) of mm/filemap.c (since 5.16): it gives up a page
// A guest that starts many processes maps many pages. So the first place rests while all pages with
// trap points are in memory: the second one wakes it. The stub lets other files' pages go on.
// Used by the tracer of a running kernel, where there may be such trap points.
// Does not: see pages that a process copies before it has them (a write to a private mapping), or
// files that are mapped by large pages.
// Threads: on_trap() on those that poll, look() on the fire thread, the others on the session's.
// Fire context: no; on_trap() may pause the machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "providers/trap_points/trap_point_table.h"
#include "providers/trap_points/user_point_table.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/shim/fetch_list.h"
#include "vmm/shim/trap.h"

namespace ringside::providers {

class PageWatch final : public vmm::TrapWatch {
 public:
  /// All must outlive it.
  PageWatch(vmm::Machine& machine, guest_linux::Kernel& kernel, TrapPointTable& table,
            UserPointTable& users)
      : machine_(machine), kernel_(kernel), table_(table), users_(users) {}

  /// Whether the kernel has these functions and describes what they are given.
  static bool is_possible(const guest_linux::Kernel& kernel);
  /// How many files can be watched: the stub tells no more apart.
  static constexpr std::size_t kMostFiles = vmm::FetchList::kMostChecks - 1;

  /// Makes its own trap points. Unsupported, with the reason, where one cannot stand.
  Result<void> prepare();
  /// After prepare(): from now on the traps at its places come here.
  void add_to(vmm::TrapHandlers& handlers);
  /// Lists by which the guest lets all go on at once that touches none of these files, by place.
  std::map<GuestVirt, vmm::FetchList> lists(std::span<const GuestVirt> inodes) const;
  bool is_place(GuestVirt at) const { return at == map_ || at == remove_; }

  void on_trap(const vmm::Trap& trap) override;
  /// From time to time: lets the watch rest, or wakes it.
  void look();

 private:
  using Clock = std::chrono::steady_clock;
  struct Layout {
    std::uint32_t fault_area = 0;                                // vm_fault.vma
    std::uint32_t area_file = 0, area_start = 0, area_page = 0;  // vm_area_struct
    std::uint32_t file_inode = 0;
    std::uint32_t folio_mapping = 0, mapping_inode = 0;
    bool maps_ranges = false;  // set_pte_range()
  };
  /// Pages that are about to be mapped.
  struct Mapped {
    GuestVirt inode;
    UserPointTable::Pages pages;
  };

  static std::optional<Layout> layout_of(const guest_linux::Kernel& kernel);
  std::optional<Mapped> mapped_by(const vmm::Trap& trap) const;
  void arrive(const vmm::Trap& trap);
  void wake();

  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  TrapPointTable& table_;
  UserPointTable& users_;
  Layout layout_;
  GuestVirt map_, remove_;
  std::mutex lock_;  // of whether it rests
  Clock::time_point awake_until_{};
};

}  // namespace ringside::providers
