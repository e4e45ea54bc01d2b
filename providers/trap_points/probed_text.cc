#include "providers/trap_points/probed_text.h"

#include "providers/trap_points/sites/function_sites.h"
#include "providers/trap_points/sites/site_examiner.h"

namespace ringside::providers {
namespace {

using guest_linux::Kernel;

/// Every way into another kernel without a reset goes through machine_kexec(), also a crash's
/// (arch/x86/kernel/machine_kexec_64.c, since 2.6.13): the other vCPUs are stopped by then, and
/// this one still has its interrupt table.
Result<std::optional<GuestVirt>> find_kexec_site(const GuestReader& text,
                                                 const guest_linux::SymbolTable& symbols) {
  const guest_linux::Symbol* const function = symbols.find("machine_kexec", "vmlinux");
  if (function == nullptr) return std::nullopt;  // a kernel without kexec
  return TRY(entry_site(text, *function, &symbols));
}

}  // namespace

ProbedText::ProbedText(const vmm::GuestMemory& memory, const OriginalText::ReplacedText& ours,
                       Kernel& kernel)
    : live_(memory, kernel.table()),
      original_(live_, ours, kernel),
      kexec_site_(find_kexec_site(original_, kernel.symbols())),
      fault_search_(find_fault_search(original_, kernel)),
      examiner_(original_, kernel, kexec_site_.value_or(std::nullopt), fault_search_) {}

Result<ProbeSite> ProbedText::examine(GuestVirt address, SitePolicy policy) {
  if (examiner_.find_functions_without_idt()) look_again();
  auto site = examiner_.examine(address, policy);
  if (!site || !site->may_fault()) return site;
  const auto& search = search_site();
  if (!search) return refuse(address, "exception table; " + search.error().message);
  return site;
}

const Result<ProbeSite>& ProbedText::search_site() {
  if (!search_site_) {
    search_site_ = fault_search_ ? examiner_.examine(*fault_search_, SitePolicy::Normal)
                                 : tl::make_unexpected(fault_search_.error());
  }
  return *search_site_;
}

void ProbedText::look_again() {
  if (original_.look_again()) ++generation_;
  examiner_.forget();
  search_site_.reset();
}

bool ProbedText::is_changing(guest_linux::KprobeTable::Changes changes) const {
  live_.forget();
  return original_.kprobe_table().is_changing(live_, changes);
}

}  // namespace ringside::providers
