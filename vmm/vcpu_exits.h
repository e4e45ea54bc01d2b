// The exits of vCPUs that run on threads of this process. They allow breakpoints without any guest
// code, an answer on the vCPU's own thread, and an event for every exit. vmm/kvm implements
// VcpuExits; providers implement ExitSink. A machine in another process (QEMU) has neither.
// Threads: the sink is called on vCPU threads, several at once; it locks where it must.
// Fire context: the sink's functions yes; VcpuExits' no.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"

namespace ringside::vmm {

class PausedMachine;

/// One vCPU that stands still because it left the guest. Valid only during the sink's call.
class StoppedVcpu {
 public:
  virtual ~StoppedVcpu() = default;
  virtual unsigned index() const = 0;
  /// The registers at the exit. rip is at the instruction that caused it (breakpoint, port, MSR),
  /// on every host. Fetched when first asked for. kernel_gs_base is 0 in kernel mode while gs_base
  /// lies in the kernel's half: then gs_base is the CPU's own.
  virtual const Registers& registers() = 0;
  /// The guest's TSC at the exit: the host's TSC when the thread came back, plus the guest's
  /// offset.
  virtual std::uint64_t guest_tsc() const = 0;
};

/// Something that only the host sees. `values` are, in order, the arguments of the vm provider's
/// probes (docs/vmm.md).
struct VcpuEvent {
  enum class Kind : std::uint8_t {
    Exit,       // values: ns in the guest before it, ns outside before that; `reason` says which
    PortIn,     // port, bytes each, count, value (of the first)
    PortOut,    // the same
    MmioRead,   // guest-physical address, bytes, value
    MmioWrite,  // the same
    MsrRead,    // index, value
    MsrWrite,   // index, value
    Cpuid,      // leaf, subleaf, eax, ebx, ecx, edx: only where the host tells (kvm tracepoints)
    Hlt,        // ns spent halted, told at its end: only where the host tells
    Inject,     // GSI, level
    Dirty,      // guest-physical address of the page
  };
  static constexpr std::size_t kKinds = 11;
  Kind kind = Kind::Exit;
  std::uint32_t reason = 0;  // Exit: KVM_EXIT_* of linux/kvm.h
  std::array<std::uint64_t, 6> values{};
};

class ExitSink {
 public:
  virtual ~ExitSink() = default;
  /// The shim rang. `value` was written to the doorbell port: a mailbox's index, hostile.
  virtual void on_doorbell(StoppedVcpu& vcpu, std::uint32_t value) = 0;
  /// The vCPU met our breakpoint at `address`. After the call it executes the instruction there.
  /// rip differs from `address` while the guest runs that code at another one (its physical
  /// address).
  virtual void on_breakpoint(StoppedVcpu& vcpu, GuestVirt address) = 0;
  virtual void on_event(StoppedVcpu& vcpu, const VcpuEvent& event) = 0;
  /// The answer to VcpuExits::sample(tag).
  virtual void on_sample(StoppedVcpu& /*vcpu*/, std::uint64_t /*tag*/) {}
};

class VcpuExits {
 public:
  virtual ~VcpuExits() = default;

  /// The port of the doorbell; the shim's control block carries its number to the guest.
  static constexpr std::uint16_t kDoorbellPort = 0x5244;

  /// Replaces the sink; null: none. Returns when no vCPU is in the old one any more, which must
  /// live until then.
  virtual void set_sink(PausedMachine& machine, ExitSink* sink) = 0;

  struct Wanted {
    std::array<bool, VcpuEvent::kKinds> kinds{};  // by VcpuEvent::Kind
  };
  /// Chooses which events the sink gets. Unsupported, with the host's missing feature, when it
  /// cannot tell one of them; then nothing changes. An event that is not wanted costs nothing.
  virtual Result<void> want(PausedMachine& machine, const Wanted& wanted) = 0;
  /// Why this host cannot tell events of that kind; empty when it can.
  virtual std::optional<std::string> cannot(VcpuEvent::Kind kind) const = 0;

  /// The physical address where the boot loader put the code of a linked address; empty for none.
  using LoadedAt = std::function<std::optional<GuestPhys>(GuestVirt)>;

  /// Replaces the breakpoints by these (none: removes them). They need no guest code, no IDT and no
  /// paging. Addresses that no page table maps yet, and instructions that our bytes do not fit, are
  /// left to the four debug registers: Limit, with the way out, when they are more than four, and
  /// Invalid on a host where debug registers do not work. On failure nothing has changed.
  /// `loaded_at` (may be empty): bytes are also put where the loader has put the code, and are met
  /// there at physical addresses before the guest pages. Only for kernels that do not rewrite their
  /// text meanwhile.
  virtual Result<void> set_breakpoints(PausedMachine& machine, std::span<const GuestVirt> addresses,
                                       const LoadedAt& loaded_at) = 0;

  /// Makes every vCPU leave the guest and call on_sample(tag) on its own thread, then go on.
  /// Returns at once; vCPUs do not wait for each other. A vCPU that has not answered by the next
  /// call answers once, with the newer tag.
  virtual void sample(std::uint64_t tag) = 0;

  /// Events that the sink did not get, because too many came at once. Only grows.
  virtual std::uint64_t lost_events() const { return 0; }
};

}  // namespace ringside::vmm
