// A binding says how a probe stands on an instruction: where its arguments come from and
// whether it fires at all. Made by providers when a probe is enabled, used by the dispatcher.
// Fire context: yes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dif/program/probe_description.h"
#include "providers/context/argument_plan.h"
#include "providers/trap_points/trap_point_table.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"

namespace ringside::providers {

inline constexpr std::uint32_t kNoNumber = UINT32_MAX;
/// x32 calls carry this bit in their number, and use the same functions for most numbers.
inline constexpr std::uint32_t kX32NumberBit = 0x4000'0000;
inline constexpr std::uint32_t kSyscallNumbers = 1024;  // table size of the numbers we know

/// How a trap at a place concerns the probe.
enum class Role : std::uint8_t {
  Fires,
  /// The probe is the return of a function that ends here in a jump to another one: it fires where
  /// that one returns.
  Waits,
  /// A return of a function that others jump to: those of them fire here that wait for it.
  Ends,
  /// The same for a jump that cannot be followed: the value is not known.
  EndsUnknown,
};

/// A jump to another function that takes the place of a call and a return.
struct TailCall {
  GuestVirt from;                  // the function that it is the end of
  std::vector<GuestVirt> through;  // sorted: functions that may return in its stead

  auto operator<=>(const TailCall&) const = default;
};

/// The memory that a TrapFilter reads. A recorded trap copies it, so the filter can be asked later.
/// If one of the codes has an obstacle, traps of this filter cannot be recorded.
struct RecordedFilter {
  std::vector<RecordedCode> codes{};
  /// Of each word of FilterValues the address that it is, counted from the loads of one of the
  /// codes; empty if it is none, or not known.
  struct Word {
    std::size_t code = 0;  // in `codes`
    std::optional<dif::RecordAddress> address{};
  };
  std::array<Word, dif::kMaxProbeArguments> words{};
};

/// Decides which traps at a place fire a probe, where not all of them do, and works out arguments
/// of those firings. Made by providers, and asked for each trap. Fire context: yes.
class TrapFilter {
 public:
  virtual ~TrapFilter() = default;
  /// Whether the probe fires; then `out` is what its plan's ArgumentSource::filter_value() shows.
  /// Asked once for each trap, in the order of the traps of one vCPU, on several vCPUs at once.
  virtual bool fires(const ArgumentMoment& at, FilterValues& out) const = 0;
  /// Not in fire context.
  virtual RecordedFilter recorded() const = 0;
};

/// The moment of a jump or a return.
struct TaskMoment {
  std::uint64_t task = 0;  // address of its structure
  std::int32_t tid = 0;
  std::uint64_t stack_pointer = 0;
};

struct Binding {
  dif::ProbeId probe;
  Role role = Role::Fires;
  std::uint32_t site = 0;  // for ArgumentSource::of_site(): a way out's offset
  arch::Condition condition = arch::kNoCondition;  // of a jump: fires only when it is taken
  /// Whether the stack pointer points at the return address, as at a function's first and last
  /// instruction. Then the first frame of a stack is the caller's.
  bool at_function_edge = true;
  /// On the path that all system calls share: fires for this one only. The plan says where the
  /// number is.
  std::uint32_t number = kNoNumber;
  /// Fires in the process of this number only; 0: in all.
  std::int32_t process = 0;
  /// Decides which traps fire; null: each does. Lives as long as the plan.
  const TrapFilter* filter = nullptr;
  /// For a binding that waits; otherwise null. It lives as long as the plan.
  const TailCall* tail_call = nullptr;
  /// Outlives the dispatcher, as the provider does that it belongs to.
  const ArgumentPlan* plan = &kNoArguments;
};

/// A place in a file that processes have mapped.
struct FilePlace {
  GuestVirt inode;
  std::uint64_t offset = 0;
  /// Offset in the file of the counter that a program looks at before it comes here
  /// (user_semaphores.h).
  std::optional<std::uint64_t> semaphore{};

  bool operator==(const FilePlace&) const = default;
};

/// Which functions that have no ftrace site may have probes of fbt.
enum class WithoutFtraceSite : std::uint8_t {
  None,
  Safe,  // those that function_probes.h finds (BareFunctions)
  All,   // ftrace has no say: the kernel is not Linux
};

/// Where providers put their probes.
class ProbePoints {
 public:
  virtual ~ProbePoints() = default;
  /// Whether a probe may stand here; the error says why not.
  virtual Result<ProbeSite> examine(GuestVirt at, SitePolicy policy) = 0;
  /// Another number than before: sites that were examined before may be none any more.
  virtual std::uint64_t generation() const { return 0; }
  /// Makes the trap point and leads it to the binding. Probes at one address fire in the order of
  /// these calls.
  virtual Result<void> bind(const ProbeSite& site, const Binding& binding) = 0;
  /// The same in a file (user_point_table.h).
  virtual Result<void> bind_in_file(const FilePlace& place, const Binding& binding) {
    (void)place, (void)binding;
    return fail(ErrorCode::Unsupported, "processes have no probes here");
  }
  /// The text that these probes stood on is gone: they fire nowhere once those that are bound next
  /// do.
  virtual void forget(std::span<const dif::ProbeId> probes) { (void)probes; }
  virtual WithoutFtraceSite without_ftrace_site() const { return WithoutFtraceSite::Safe; }

 protected:
  /// For providers that examine in another way than the trap point table.
  static ProbeSite proven(GuestVirt at, std::span<const std::byte> instruction, SitePolicy policy) {
    return ProbeSite(at, instruction, policy);
  }
};

}  // namespace ringside::providers
