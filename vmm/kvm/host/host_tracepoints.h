// Events that KVM handles in the kernel, without an exit, learned from the host's tracepoints:
//   kvm:kvm_cpuid         the guest executed cpuid
//   kvm:kvm_exit          filtered to hlt: the guest halted
//   kvm:kvm_vcpu_wakeup   the host thread slept for it; `ns`
// Each vCPU's thread has its own events, in one ring, by perf_event_open(2). A cpuid, and the end
// of a halt, signal the thread, which leaves KVM_RUN before the guest's next instruction: so the
// guest's registers are those of that moment. Tracing itself causes that exit; vm::exit:intr sees
// it.
// A halt is told when it ends: at a wakeup, unless a kick of ours caused that one and the vCPU goes
// on halting. A halt that finds its interrupt pending sleeps 0 ns, and is told with the next exit.
// Versions: the fields have these names since before Linux 5.10 (`index`, the subleaf, since 5.7).
// A format that lacks one is refused by name.
// Used by kvm_exits (opens) and vcpu (drains, on its thread).
// drain() runs before fire context, on the same thread.
#pragma once

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

// The layout of a host tracepoint's record, from its format file in tracefs (Linux
// Documentation/trace/events.rst, section 2). The host's kernel writes it; it is not hostile, but
// fields come and go with versions.

/// Where an unsigned field of 1, 2, 4 or 8 bytes lies in the record.
struct TraceField {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;

  /// Empty when the record is too short for it.
  std::optional<std::uint64_t> read(std::span<const std::byte> record) const;
};

/// The "ID:" line.
Result<std::uint32_t> trace_id(std::string_view format);
/// NotFound when the format has no such field, Invalid when it is no number of a size above.
Result<TraceField> trace_field(std::string_view format, std::string_view name);

/// The reader's side of a perf event's ring: records between data_tail and data_head of the mapped
/// page (linux/perf_event.h, struct perf_event_mmap_page; man perf_event_open). Events sampled with
/// PERF_SAMPLE_TIME | PERF_SAMPLE_RAW, nothing else.
/// One reader at a time. Does not own the mapping. Allocates nothing.
class PerfRing {
 public:
  /// `data`: the ring itself, a power of two of bytes.
  PerfRing(perf_event_mmap_page& page, std::span<const std::byte> data)
      : page_(&page), data_(data) {}

  struct Sample {
    std::uint64_t time = 0;
    std::span<const std::byte> raw;  // valid until the next call; cut when too long
  };
  /// The next sample, if there is one; skips records of other kinds.
  std::optional<Sample> next();
  /// Samples that found no room, as far as the kernel has reported them. Only grows.
  std::uint64_t lost() const { return lost_; }

 private:
  void copy(std::uint64_t at, std::span<std::byte> to) const;

  perf_event_mmap_page* page_;
  std::span<const std::byte> data_;
  std::array<std::byte, 512> record_;  // whole here, however it lies around the ring's end
  std::uint64_t lost_ = 0;
};

/// An event with its own time, in nanoseconds of CLOCK_MONOTONIC_RAW.
struct HostEvent {
  std::uint64_t time = 0;
  VcpuEvent event;
};

/// The formats of the three tracepoints on this host.
struct HostFormats {
  struct Cpuid {
    std::uint32_t id = 0;
    std::array<TraceField, 6> fields{};  // leaf, subleaf, eax, ebx, ecx, edx
  };
  struct Wakeup {
    std::uint32_t id = 0;
    TraceField ns;
  };
  Cpuid cpuid;
  std::uint32_t exit_id = 0;
  Wakeup wakeup;
};
Result<HostFormats::Cpuid> parse_cpuid_format(std::string_view format);
Result<HostFormats::Wakeup> parse_wakeup_format(std::string_view format);

/// Turns raw records into events. Pure.
class HostEventDecoder {
 public:
  using Tell = std::function<void(const HostEvent&)>;

  explicit HostEventDecoder(const HostFormats& formats) : formats_(formats) {}

  void take(std::uint64_t time, std::span<const std::byte> raw, const Tell& tell);
  /// Whether a halt has begun whose end was not told yet.
  bool halting() const { return halt_.has_value(); }
  /// Whether a wakeup has come since the last question.
  bool take_wakeup() { return std::exchange(woken_, false); }
  /// Ends the halt: the vCPU is known to run again.
  void finish(const Tell& tell);

 private:
  const HostFormats formats_;
  struct Halt {
    std::uint64_t time = 0, ns = 0;
  };
  std::optional<Halt> halt_;
  bool woken_ = false;
};

/// The tracepoints of this host.
class HostTracepoints {
 public:
  static constexpr const char* kTracefs = "/sys/kernel/tracing";

  /// Why this host cannot tell events of that kind (Cpuid or Hlt); empty when it can. The first
  /// call looks at the host.
  std::optional<std::string> cannot(VcpuEvent::Kind kind);
  const HostFormats& formats() const { return formats_; }

 private:
  Result<void> look_for_cpuid();
  Result<void> look_for_halts();

  bool looked_ = false;
  HostFormats formats_;
  std::optional<std::string> no_cpuid_, no_halts_;
};

/// Where the events of one vCPU come from: the host's tracepoints, or a test.
class HostEventSource {
 public:
  virtual ~HostEventSource() = default;
  struct Vcpu {
    bool kicked = false;                    // somebody made it leave the guest
    const std::function<bool()> is_halted;  // by its KVM state; asked when that matters
  };
  /// Appends what has come since the last call to `events`, oldest first. On the vCPU's thread.
  virtual void drain(std::vector<HostEvent>& events, const Vcpu& vcpu) = 0;
  /// Events that the host dropped for want of room. Only grows. Any thread.
  virtual std::uint64_t lost() const = 0;
};

/// The events of one vCPU.
class VcpuTracepoints final : public HostEventSource {
 public:
  struct Wanted {
    bool cpuid = false, halts = false;
  };
  /// For the thread `tid` of this process, which gets `signal` when there is something to drain.
  static Result<std::unique_ptr<VcpuTracepoints>> open(const HostFormats& formats, Wanted wanted,
                                                       int tid, int signal);
  ~VcpuTracepoints() override;
  VcpuTracepoints(const VcpuTracepoints&) = delete;
  VcpuTracepoints& operator=(const VcpuTracepoints&) = delete;

  void drain(std::vector<HostEvent>& events, const Vcpu& vcpu) override;
  std::uint64_t lost() const override { return ring_->lost(); }

 private:
  explicit VcpuTracepoints(const HostFormats& formats) : decoder_(formats) {}
  Result<void> add(std::uint32_t id, const char* filter, int tid, int signal);
  Result<void> map(int fd);

  std::vector<UniqueFd> fds_;  // the ring is the first's
  std::span<std::byte> mapping_;
  std::optional<PerfRing> ring_;
  HostEventDecoder decoder_;
};

/// Converts times of CLOCK_MONOTONIC_RAW to the host's TSC, by comparing both clocks when it was
/// made and now. Good for times between those two moments.
class TscOfTime {
 public:
  struct Moment {
    std::uint64_t tsc = 0, ns = 0;
  };
  static Moment now();

  TscOfTime() : first_(now()) {}
  explicit TscOfTime(Moment first) : first_(first) {}
  std::uint64_t at(std::uint64_t ns, const Moment& now) const;

 private:
  Moment first_;
};

}  // namespace ringside::vmm::kvm
