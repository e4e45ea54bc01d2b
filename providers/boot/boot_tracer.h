// The tracer of a kernel that is traced from its first instruction. Symbols, types and text come
// from the kernel's file, and the probes are breakpoints that need no guest code.
// Used by the tracer alone. Threads: the session's; notices are left on vCPUs' threads, too. Does
// not: make or release the machine.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "providers/boot/boot_points.h"
#include "providers/tracer/kernel_tracer.h"
#include "vmm/linux/discovery/file_kernel.h"
#include "vmm/machine.h"

namespace ringside::providers {

class BootTracer final : public KernelTracer {
 public:
  /// `machine` has exits() and was made with KvmConfig::hold. Both must outlive it.
  BootTracer(vmm::Machine& machine, guest_linux::FileKernel& kernel)
      : machine_(machine), kernel_(kernel), points_(kernel) {}
  BootTracer(const BootTracer&) = delete;
  BootTracer& operator=(const BootTracer&) = delete;

  void add_providers(Registry& registry) override;
  std::optional<std::uint32_t> tsc_khz() const override { return std::nullopt; }
  std::unique_ptr<KernelTrace> begin(ProbeSink& sink, GuestClock& clock, Stacks stacks) override;
  std::vector<std::string> take_notices() override;

 private:
  friend class BootTrace;
  void notice(std::string text);

  vmm::Machine& machine_;
  guest_linux::FileKernel& kernel_;
  BootPoints points_;
  std::mutex notices_lock_;  // between vCPUs and the session
  std::vector<std::string> notices_;
};

}  // namespace ringside::providers
