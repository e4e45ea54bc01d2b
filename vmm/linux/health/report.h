// The health report of a guest: plain data, as it was read. A fact that could not be read is empty.
// Made by examine() (health.h), judged by diagnose() (diagnosis.h), printed by the command `why`.
// All times are nanoseconds, all texts are printable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/address.h"

namespace ringside::guest_linux {

inline constexpr std::uint64_t kSecond = 1'000'000'000;
/// Nothing that is well takes longer: a disk to answer, a lock to come free, a CPU to be had.
inline constexpr std::uint64_t kLong = kSecond;

struct Frame {
  std::uint64_t address = 0;
  std::string text;  // "mutex_lock+0x31", with the module after it
};

enum class TaskState : std::uint8_t {
  Running,          // on a CPU or in a run queue
  Sleeping,         // can be woken by signals
  Uninterruptible,  // state D
  Idle,             // a kernel thread that waits for work, without being load
  Stopped,          // by a signal or a tracer
  Dead,
  Other,
};
/// ps's letter.
char letter_of(TaskState state);

struct Task {
  GuestVirt address, stack_base;
  std::int64_t pid = 0, process = 0;  // a thread's own number, and its process's (tgid)
  std::string name;
  TaskState state = TaskState::Other;
  bool is_on_cpu = false, is_kernel_thread = false;
  bool waits_for_io = false;  // in_iowait
  bool is_oom_victim = false;
  std::optional<std::uint32_t> cpu;       // where it runs or ran last
  std::optional<std::uint32_t> policy;    // SCHED_*: 1 and 2 are real-time, 6 is deadline
  std::optional<std::uint64_t> priority;  // rt_priority
  /// How long it has been off the CPU, or on it, or waiting for one: by `state` and `is_on_cpu`.
  std::optional<std::uint64_t> since;

  bool is_realtime() const { return policy == 1U || policy == 2U || policy == 6U; }
};

/// A spin lock that one sleeps for is a real-time kernel's.
enum class LockKind : std::uint8_t { Mutex, RwSemaphore, PercpuRwSemaphore, SpinLock };

/// A task's wait: for which thing, and who holds it.
struct Wait {
  enum class For : std::uint8_t {
    Unknown,
    Lock,
    Io,                // a page, a buffer or a request of a device
    FrozenFilesystem,  // writes are held back until it is thawed
    Completion,        // an event that another task announces
    Memory,
  };
  For what = For::Unknown;
  std::string function;  // of the kernel, in which it sleeps; empty when the stack is not known
  LockKind lock_kind = LockKind::Mutex;
  GuestVirt lock;          // 0: not found
  std::string lock_name;   // of one that has a symbol, or what it lies in
  std::int64_t owner = 0;  // pid of who holds it; 0: not known
  GuestVirt owner_task;
  bool is_read_held = false;  // by readers: the owner is one of them, or was
  std::string filesystem;     // FrozenFilesystem
};

/// A task with what was found out about it.
struct TaskReport {
  Task task;
  std::vector<Frame> stack;  // innermost first
  std::optional<Wait> wait;  // of one that sleeps
};

struct CpuReport {
  std::uint32_t cpu = 0;
  std::optional<TaskReport> running;  // the idle task included
  bool is_idle = false;
  bool is_online = true;                      // a panic takes the other CPUs off line
  std::optional<std::uint64_t> queue_length;  // tasks that run or want to, nr_running
  std::optional<std::uint64_t> realtime_tasks;
  std::optional<std::uint64_t> timer_overdue;    // it has taken no timer interrupt for
  std::optional<std::uint64_t> watchdog_behind;  // the soft-lockup watchdog was not touched for
  /// It is idle, and what another CPU asked of it by an interrupt has waited so long at least.
  std::optional<std::uint64_t> call_waits;
  std::string called_function;        // that it was asked to run; empty: not known
  bool owes_quiescent_state = false;  // RCU waits for it
};

struct VcpuReport {
  unsigned vcpu = 0;
  /// Narrow: 32 bits. Crashed: in the kernel that crashed, while another vCPU runs its crash
  /// kernel.
  enum class Mode : std::uint8_t { Kernel, User, Firmware, Narrow, Crashed, Other };
  Mode mode = Mode::Other;
  std::optional<std::uint32_t> cpu;  // Linux's number
  std::uint64_t pc = 0;
  std::string where;  // the kernel function at pc
  bool interrupts_on = true;
  bool is_halted = false;  // after a HLT instruction
  bool has_not_begun = false;
  /// It was seen twice at the same work with interrupts off, so far apart.
  std::optional<std::uint64_t> interrupts_off_for;
};

struct LogLine {
  std::uint64_t time = 0;  // since boot
  unsigned level = 0;      // syslog's: 0 emergency to 7 debug
  std::string text;
};

struct PanicReport {
  std::uint32_t cpu = 0;
  std::string reason;  // of the log: "Kernel panic - not syncing: ..." without that
};

/// The kernel before a crash kernel (kdump).
struct CrashedKernelReport {
  std::string release;
  std::string reason;  // by its log; empty: it does not say
};

struct MemoryReport {  // bytes
  std::optional<std::uint64_t> total, free, page_cache, anonymous, shared, dirty, writeback,
      unreclaimable_slab, swap_total, swap_free, reserve;
  std::optional<std::uint64_t> oom_kills;
  std::string last_killed;  // "dd (pid 12)", by the log's last lines; empty: nobody
  std::optional<std::uint64_t> last_kill_age;
  std::optional<double> pressure;  // percent of the last 10 s in which all work waited for memory
};

struct RequestReport {
  std::uint64_t sector = 0, bytes = 0;
  std::string operation;  // "read", "write", "flush"...
  std::optional<std::uint64_t> age;
};

struct DiskReport {
  std::string name;
  std::uint64_t in_flight = 0;             // requests that the driver has
  std::optional<std::uint64_t> accounted;  // requests begun and not ended, by the disk's statistics
  std::optional<std::uint64_t> oldest;
  std::vector<RequestReport> requests;  // the oldest ones

  /// It has had a request for long.
  bool hangs() const { return in_flight != 0 && oldest.value_or(0) >= kLong; }
};

struct FilesystemReport {
  std::string device, type;
  GuestVirt super_block;
};

struct RcuReport {
  bool in_grace_period = false;
  std::optional<std::uint64_t> age;  // of the grace period
  std::vector<std::uint32_t> cpus;   // that it waits for
  bool waits_for_tasks = false;      // that were preempted as readers
};

struct Cause {
  enum class Kind : std::uint8_t {
    Host,
    CrashKernel,
    Stopped,
    NotStarted,
    Firmware,
    NoLinux,
    Panicked,
    InterruptsOff,
    TimerLost,
    CallLost,
    LockCycle,
    FrozenFilesystem,
    Storage,
    LockHolder,
    OutOfMemory,
    SoftLockup,
    KernelSpin,
    RealtimeSpin,
    RcuStall,
    Busy,
    TasksStuck,
    AllIdle,
    Unremarkable,
  };
  Kind kind = Kind::Unremarkable;
  std::string text;  // one line
};
/// "panicked", "lock-cycle"...: for programs that read reports.
std::string_view name_of(Cause::Kind kind);

struct HealthReport {
  std::string release;         // empty: no Linux was found, and the rest is of the vCPUs only
  std::string kernel_trouble;  // why it was not
  bool has_types = true;       // else its tasks and the like cannot be looked at
  std::optional<std::string> stopped_by;  // who or what has stopped the guest; empty: it runs
  std::vector<std::string> held_back;     // what the host keeps from running, a line each
  std::vector<std::string>
      throttled_drives;  // what the host's side of disks is slow by, a line each
  std::optional<std::uint64_t> uptime;
  bool clock_stands = false;  // no CPU has moved the guest's clock on, though a timer is overdue
  std::vector<VcpuReport> vcpus;  // empty: their registers are not known
  std::vector<CpuReport> cpus;
  std::optional<std::array<double, 3>> load;
  std::size_t task_count = 0;
  bool tasks_complete = true;        // the list of tasks closed
  std::vector<TaskReport> waiting;   // in state D, the longest wait first
  std::vector<TaskReport> holders;   // of locks, that are in neither list above
  std::vector<TaskReport> starving;  // runnable, for long
  std::optional<PanicReport> panic;
  std::optional<CrashedKernelReport> crashed;  // this is the crash kernel of that one
  MemoryReport memory;
  std::vector<DiskReport> disks;  // with requests in flight
  std::vector<FilesystemReport> frozen;
  std::optional<RcuReport> rcu;
  std::optional<std::uint64_t> watchdog_threshold;  // of soft lockups
  std::vector<LogLine> log;                         // the last lines, the oldest first
  std::vector<std::string> unknown;  // what this kernel does not let us tell, a line each
  std::vector<Cause> causes;         // the likeliest first; never empty
};

}  // namespace ringside::guest_linux
