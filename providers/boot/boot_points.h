// ProbePoints over breakpoints that need no guest code (vmm/vcpu_exits.h): for a kernel that is
// traced from its first instruction, and for kernels other than Linux. Knows when each breakpoint
// may stand: Linux rewrites parts of its text while it boots, and frees its init text later. Used
// by the boot tracer. Does not: set breakpoints.
// Fire context: has_point() yes; everything else no.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "providers/context/binding.h"
#include "providers/dispatch/dispatch_table.h"
#include "providers/trap_points/address_index.h"
#include "vmm/linux/discovery/file_kernel.h"

namespace ringside::providers {

class BootPoints final : public ProbePoints {
 public:
  /// `kernel` must outlive it.
  explicit BootPoints(const guest_linux::FileKernel& kernel) : kernel_(kernel) {}

  /// Refuses text that the kernel patches again and again. Also refuses text in which the guest
  /// cannot take an exception: on hosts whose KVM does not see int3, the guest must take one.
  Result<ProbeSite> examine(GuestVirt at, SitePolicy policy) override;
  /// Unsupported once tracing has begun.
  Result<void> bind(const ProbeSite& site, const Binding& binding) override;
  /// Tracing begins: what was bound, for the dispatcher's first epoch.
  DispatchTable::Change take_bound();
  /// Other kernels have no ftrace: their functions begin where they begin.
  WithoutFtraceSite without_ftrace_site() const override {
    return kernel_.is_linux() ? WithoutFtraceSite::None : WithoutFtraceSite::All;
  }
  /// Whether a probe stands there. Fire context.
  bool has_point(GuestVirt address) const { return index_.find(address).has_value(); }

  struct Point {
    GuestVirt address;
    bool patched_at_boot = false;  // not before the kernel has rewritten its text
    bool is_init = false;          // not after the kernel has freed it
  };
  bool is_linux() const { return kernel_.is_linux(); }
  /// In the order of binding.
  const std::vector<Point>& points() const { return points_; }
  /// A place in the function to notice that it is called, before anything of it ran; empty when
  /// this kernel does not have the function.
  std::optional<GuestVirt> marker(std::string_view function) const;

 private:
  bool is_patched_at_boot(GuestVirt at, std::size_t length) const;

  const guest_linux::FileKernel& kernel_;
  DispatchTable::Change bound_;
  bool is_complete_ = false;
  std::vector<Point> points_;
  AddressIndex index_;
};

}  // namespace ringside::providers
