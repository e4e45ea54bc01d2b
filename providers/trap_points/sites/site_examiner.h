// Decides whether an int3 may stand at a place in a running Linux, and makes its ProbeSite.
// Used by the trap point table. Does not: write anything, or find the places that providers want.
//
// Some instructions may fault, and the kernel handles the fault by looking up its address in the
// exception table. The address of a slot is not in that table. So the function that searches the
// table has a trap point of ours. Its slot turns an address in a slot into the instruction's own
// address (Shim::fault_search). That runs in the guest alone, so it works even if we die. The rest
// is the kernel's: it brings the missing page, and the instruction runs on in its slot without a
// second firing. This trap point is made with the first probe on an instruction that may fault. It
// is restored last, once nobody is in a slot.
// Places (kernel/extable.c, arch/x86/mm/extable.c, since 5.17 with data in each entry):
//   search_exception_tables(address): for each vector, asked by fixup_exception() and by others
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "disasm/decoder.h"
#include "providers/trap_points/sites/function_sites.h"
#include "providers/trap_points/sites/functions_without_idt.h"
#include "providers/trap_points/sites/original_text.h"
#include "providers/trap_points/sites/probe_site.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// The place where the kernel's search begins. Unsupported, with the reason, if a trap point there
/// would miss some searches, or if the table's entries do not tell how they handle a fault.
Result<GuestVirt> find_fault_search(const GuestReader& text, const guest_linux::Kernel& kernel);

/// Whether a fault of the instruction in a slot is mended as it is in its place. `entry` is of the
/// exception table, and names the instruction.
bool mends_in_slot(const guest_linux::Kernel::PatchedSite& entry,
                   const disasm::Instruction& instruction);

/// The error (Unsupported) of a place that no probe can have.
tl::unexpected<Error> refuse(GuestVirt address, std::string_view why);

class SiteExaminer {
 public:
  /// `text` and `kernel` must outlive it. `kexec_site` is the very beginning of the function that
  /// gives up the kernel's interrupt table: there the kernel still has it. `fault_search` is what
  /// find_fault_search() says, and must outlive it.
  SiteExaminer(const OriginalText& text, const guest_linux::Kernel& kernel,
               std::optional<GuestVirt> kexec_site, const Result<GuestVirt>& fault_search)
      : text_(text), kernel_(kernel), kexec_site_(kexec_site), fault_search_(fault_search) {}

  /// Finds what runs before the kernel can take an int3, which takes some time: in it, kprobes of
  /// the guest come and go. False when that is known already.
  bool find_functions_without_idt();
  /// The error (Unsupported) is the reason, for -l -v. After find_functions_without_idt().
  Result<ProbeSite> examine(GuestVirt address, SitePolicy policy);
  /// Text may have changed since the last call.
  void forget();

  /// Whether the function still is what it was, but for what the kernel rewrites all the time.
  bool is_unchanged(const ExaminedText& text) const;

 private:
  Result<void> check_ranges(GuestVirt address, const guest_linux::Symbol& function,
                            SitePolicy policy) const;
  Result<void> check_ready(GuestVirt address, const guest_linux::Symbol& function) const;
  Result<bool> check_patched(GuestVirt address, const disasm::Instruction& instruction) const;
  Result<void> check_lock(GuestVirt address, std::span<const std::byte> instruction) const;
  Result<void> check_after_sti(GuestVirt address, const guest_linux::Symbol& function) const;
  Result<std::span<const std::byte>> instruction_at(GuestVirt address,
                                                    const guest_linux::Symbol& function,
                                                    GuestVirt begin);
  Result<ExaminedText> text_of(GuestVirt address, const guest_linux::Symbol& function,
                               const std::optional<FtraceSite>& ftrace);
  std::optional<std::uint64_t> hash_of(const ExaminedText& text) const;

  /// The last instruction boundary that a sweep proved, so that consecutive sites of one function
  /// do not start over.
  struct Boundary {
    GuestVirt function, at;
  };

  const OriginalText& text_;
  const guest_linux::Kernel& kernel_;
  const std::optional<GuestVirt> kexec_site_;
  const Result<GuestVirt>& fault_search_;
  Boundary boundary_;
  std::optional<ExaminedText> last_;
  mutable std::vector<std::byte> buffer_;
  std::optional<FunctionsWithoutIdt> without_idt_;
};

}  // namespace ringside::providers
