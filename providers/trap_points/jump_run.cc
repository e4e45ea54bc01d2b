// In this file, top to bottom: the instructions, what leads into them.
#include "providers/trap_points/jump_run.h"

#include <algorithm>

#include "disasm/decoder.h"
#include "providers/trap_points/sites/function_sites.h"
#include "vmm/base/check.h"

namespace ringside::providers {

void JumpRunFinder::forget() {
  jump_targets_.forget();
  function_ = {};
  targets_.reset();
  patched_targets_.clear();
}

std::optional<JumpRun> JumpRunFinder::find(const ProbeSite& site) {
  const ExaminedText& function = site.text();
  const std::uint64_t offset = site.address().offset_from(function.begin);
  // Else it is not known who made its function.
  if (function.ftrace_offset < 0 ||
      offset < static_cast<std::uint64_t>(function.ftrace_offset) + kFtraceBytes) {
    return std::nullopt;
  }
  // In a module they need not lie side by side, and no two pages are written at once: a tracer that
  // is killed would leave half a jump.
  if (arch::left_in_page(site.address().raw()) < SHIM_JUMP_BYTES) return std::nullopt;
  auto run = gather(site);
  if (!run || may_lead_into(site)) return std::nullopt;
  // Its size does not depend on the place.
  const auto displaced = disasm::relocate_run(run->code(), site.address(), site.address());
  if (!displaced) return std::nullopt;
  run->displaced_size_ = static_cast<std::uint8_t>(displaced->size());
  return run;
}

/// Each of them has to be one that an int3 could displace, and lie in the function as it was.
std::optional<JumpRun> JumpRunFinder::gather(const ProbeSite& site) {
  const ExaminedText& function = site.text();
  JumpRun run;
  while (run.size_ < SHIM_JUMP_BYTES) {
    const GuestVirt here = site.address().wrapping_add(run.size_);
    if (!here.is_in(function.begin, function.size)) return std::nullopt;
    const auto one = examiner_.examine(here, site.policy());
    if (!one || one->text() != function) return std::nullopt;
    // The kernel mends its fault: it finds it by its slot, and a run has none for each.
    if (one->may_fault()) return std::nullopt;
    const auto bytes = one->instruction();
    CHECK(run.size_ + bytes.size() <= run.code_.size());
    std::ranges::copy(bytes, run.code_.begin() + run.size_);
    run.lengths_[run.count_++] = static_cast<std::uint8_t>(bytes.size());
    run.size_ = static_cast<std::uint8_t>(run.size_ + bytes.size());
  }
  const GuestVirt last = site.address().wrapping_add(run.size_ - 1);
  return last.is_in(function.begin, function.size) ? std::optional(run) : std::nullopt;
}

/// Whether a jump leads after the first of the five bytes, or it is not known where all lead to.
bool JumpRunFinder::may_lead_into(const ProbeSite& site) {
  const GuestVirt from = site.address();
  const auto leads_into = [from](const std::vector<GuestVirt>& targets) {
    const auto after = std::ranges::upper_bound(targets, from);
    return after != targets.end() && jump_interior(from).contains(*after);
  };
  if (leads_into(patched_targets())) return true;
  if (site.text() != function_) {
    const guest_linux::Symbol* const symbol = kernel_.symbols().at(from);
    CHECK(symbol != nullptr);
    function_ = site.text();
    targets_ = jump_targets_.of(*symbol);
  }
  return !targets_ || leads_into(*targets_);
}

/// Where static keys that are off would jump to, and where the kernel goes on after a fault.
const std::vector<GuestVirt>& JumpRunFinder::patched_targets() {
  if (!patched_targets_.empty()) return patched_targets_;
  for (const auto& site : kernel_.patched_sites()) {
    for (const GuestVirt target : {site.target, site.fixup}) {
      if (target != GuestVirt()) patched_targets_.push_back(target);
    }
  }
  patched_targets_.emplace_back(~std::uint64_t{0});  // never empty
  std::ranges::sort(patched_targets_);
  return patched_targets_;
}

}  // namespace ringside::providers
