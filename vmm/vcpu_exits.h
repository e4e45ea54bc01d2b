// What only a machine whose vCPUs run on threads of this process can offer: breakpoints without any
// guest code, an answer on the vCPU's own thread, and every exit as an event. vmm/kvm/ implements
// VcpuExits; providers/ implement ExitSink. A machine in another process (QEMU) has none.
// Threads: the sink is called on vCPU threads, several at once; whoever needs one at a time locks.
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

/// One vCPU that stands still because it left the guest. Valid during the sink's call only.
class StoppedVcpu {
 public:
  virtual ~StoppedVcpu() = default;
  virtual unsigned index() const = 0;
  /// As of the exit; rip is at the instruction that caused it where the exit is about one
  /// (breakpoint, port, MSR), on every host. Fetched when first asked for. kernel_gs_base is 0
  /// in kernel mode with a GS base in the kernel's half: then that one is the CPU's.
  virtual const Registers& registers() = 0;
  /// The guest's TSC at the exit: the host's when the thread came back, plus the guest's offset.
  virtual std::uint64_t guest_tsc() const = 0;
};

/// What the host alone sees. Values, in order, are those of the vm provider's probes (docs/vmm.md).
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
  /// The shim rang: `value` is what it wrote to the doorbell port (the mailbox's index). Hostile.
  virtual void on_doorbell(StoppedVcpu& vcpu, std::uint32_t value) = 0;
  /// A breakpoint of ours. When it returns the vCPU executes the instruction that stands there.
  /// rip is another than `address` where the guest runs the code at another one: its physical.
  virtual void on_breakpoint(StoppedVcpu& vcpu, GuestVirt address) = 0;
  virtual void on_event(StoppedVcpu& vcpu, const VcpuEvent& event) = 0;
  /// What VcpuExits::sample asked for.
  virtual void on_sample(StoppedVcpu& /*vcpu*/, std::uint64_t /*tag*/) {}
};

class VcpuExits {
 public:
  virtual ~VcpuExits() = default;

  /// The port that rings; the shim's control block carries it to the guest.
  static constexpr std::uint16_t kDoorbellPort = 0x5244;

  /// Null: nobody. The sink must outlive its registration.
  virtual void set_sink(PausedMachine& machine, ExitSink* sink) = 0;

  struct Wanted {
    std::array<bool, VcpuEvent::kKinds> kinds{};  // by VcpuEvent::Kind
  };
  /// Which events are made; making none costs nothing. Unsupported, naming what is missing, where
  /// the host cannot tell one of them.
  virtual Result<void> want(PausedMachine& machine, const Wanted& wanted) = 0;
  /// Why this host cannot tell events of that kind; empty when it can.
  virtual std::optional<std::string> cannot(VcpuEvent::Kind kind) const = 0;

  /// Where the kernel file's loader put what is linked at an address; empty where it put nothing.
  using LoadedAt = std::function<std::optional<GuestPhys>(GuestVirt)>;

  /// Replaces the breakpoints by these (none: removes them). They need no guest code, no IDT and no
  /// paging. What no page table maps yet, and what our bytes do not fit, the four debug registers
  /// watch: Limit, with the way out, when that is more, and Invalid where they do not work. With
  /// `loaded_at` bytes stand where the loader put the code, too, and are met at its physical
  /// address before the guest pages; for kernels that do not rewrite their text meanwhile.
  virtual Result<void> set_breakpoints(PausedMachine& machine, std::span<const GuestVirt> addresses,
                                       const LoadedAt& loaded_at) = 0;

  /// Kicks every vCPU out of the guest for a look: each calls on_sample with `tag` on its own
  /// thread, where it was, and goes on; nobody waits for anybody. Returns at once. A vCPU that has
  /// not come to it by the next call answers once, with the newer tag.
  virtual void sample(std::uint64_t tag) = 0;

  /// Events that happened and were not told, because too many came at once. Only grows.
  virtual std::uint64_t lost_events() const { return 0; }
};

}  // namespace ringside::vmm
