// The kernel's text for placing probes: the text as the guest has it now, the text without int3s
// and jumps, and the findings of examinations. Used by the trap point table and its parts.
// Does not: know which trap points there are, or write.
// Threads: one at a time; kprobe_table() on any.
// Fire context: no.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/trap_points/sites/original_text.h"
#include "providers/trap_points/sites/probe_site.h"
#include "providers/trap_points/sites/site_examiner.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/text/kprobes.h"
#include "vmm/page_walk.h"

namespace ringside::providers {

class ProbedText {
 public:
  /// All must outlive it.
  ProbedText(const vmm::GuestMemory& memory, const OriginalText::ReplacedText& ours,
             guest_linux::Kernel& kernel);
  ProbedText(const ProbedText&) = delete;
  ProbedText& operator=(const ProbedText&) = delete;

  /// Whether an int3 may stand here; the error (Unsupported) is the reason.
  Result<ProbeSite> examine(GuestVirt address, SitePolicy policy);
  /// The site where the kernel looks up how to mend a fault.
  const Result<ProbeSite>& search_site();
  /// Reads again where the guest's own kprobes stand, and forgets what was found before. Until
  /// drop_copies() text is read as it was at its first reading since.
  void look_again();
  /// From now on text is read as it is at that moment.
  void drop_copies() { original_.drop_copies(); }
  /// Another number once the kprobes are others.
  std::uint64_t generation() const { return generation_; }
  /// Whether the function still is what it was at its examination.
  bool is_unchanged(const ExaminedText& function) const { return examiner_.is_unchanged(function); }
  /// Whether the guest was stopped while it changes its text.
  bool is_changing(guest_linux::KprobeTable::Changes changes) const;

  const OriginalText& original() const { return original_; }
  /// For the thread that adds trap points: a reader keeps translations without a lock. Whoever
  /// holds the table's lock has another one (ArmedText::reader()).
  const vmm::PageTableReader& live() const { return live_; }
  const guest_linux::KprobeTable& kprobe_table() const { return original_.kprobe_table(); }
  SiteExaminer& examiner() { return examiner_; }
  const Result<std::optional<GuestVirt>>& kexec_site() const { return kexec_site_; }
  /// The address alone, which nobody has examined.
  const Result<GuestVirt>& fault_search() const { return fault_search_; }

 private:
  vmm::PageTableReader live_;
  OriginalText original_;
  const Result<std::optional<GuestVirt>> kexec_site_;
  const Result<GuestVirt> fault_search_;
  SiteExaminer examiner_;
  std::uint64_t generation_ = 0;
  std::optional<Result<ProbeSite>> search_site_;  // since look_again(), once somebody has asked
};

}  // namespace ringside::providers
