// Names and arguments: the published Dynamic Tracing Guide. Places: Linux 5.10 to 6.12; prototypes
// are checked against the guest's BTF. In this file: what rows share, the tables of proc and sched.
#include "providers/stable/stable_tables.h"

namespace ringside::providers {
namespace {

using enum PlaceKind;

constexpr NativeValue kCurrent[] = {{"struct task_struct *", "task", "current"}};
constexpr NativeValue kTaskFirst[] = {{"struct task_struct *", "task", "arg0"}};
constexpr StableArgument kProcess[] = {{"psinfo_t *", 0}};
constexpr StableArgument kThread[] = {{"lwpsinfo_t *", 0}, {"psinfo_t *", 0}};

// proc

/// Why a process ended, of its exit code (wait(2)): CLD_EXITED, CLD_KILLED or CLD_DUMPED.
std::uint64_t reason_of_exit(std::uint64_t code) {
  constexpr std::uint64_t kSignal = 0x7f, kDumped = 0x80;
  constexpr std::uint64_t kCldExited = 1, kCldKilled = 2, kCldDumped = 3;
  if ((code & kSignal) == 0) return kCldExited;
  return (code & kDumped) != 0 ? kCldDumped : kCldKilled;
}

constexpr NativeValue kExitReason[] = {{"int", "reason", "current->exit_code", reason_of_exit},
                                       {"int", "group_dead", "arg1"}};
constexpr NativeValue kExec[] = {{"struct filename *", "filename", "arg1"},
                                 {"char *", "path", "filename->name"}};
constexpr NativeValue kKernelExec[] = {{"struct filename *", "filename", "0"},
                                       {"char *", "path", "arg0"}};
constexpr NativeValue kResult[] = {{"int", "error", "-result"}};
constexpr NativeValue kTaken[] = {{"int", "signal", "result"}};
constexpr NativeValue kSignal[] = {{"struct task_struct *", "task", "arg1"},
                                   {"int", "signal", "arg0"}};
constexpr NativeValue kDiscarded[] = {{"struct task_struct *", "task", "arg2"},
                                      {"int", "signal", "arg0"},
                                      {"int", "outcome", "arg4"}};
constexpr NativeValue kHandled[] = {{"int", "signal", "arg0"},
                                    {"struct kernel_siginfo *", "info", "arg1"},
                                    {"struct k_sigaction *", "action", "arg2"},
                                    {"unsigned long", "handler", "action->sa.sa_handler"}};
constexpr StableArgument kInt[] = {{"int", 0}};
constexpr StableArgument kHandledArguments[] = {
    {"int", 0}, {"k_siginfo_t *", 1}, {"unsigned long", 3}};
constexpr StableArgument kPath[] = {{"char *", 1}};
constexpr StableArgument kSignalled[] = {{"lwpsinfo_t *", 0}, {"psinfo_t *", 0}, {"int", 1}};

/// A machine fault by its signal, whose code is one of illumos's (FLTILL... of signal.d).
constexpr NativeValue kFaultInfo = {"struct kernel_siginfo *", "info", "arg0"};
constexpr NativeValue kIllegal[] = {{"int", "code", "1"}, kFaultInfo};
constexpr NativeValue kBreakpoint[] = {{"int", "code", "3"}, kFaultInfo};
constexpr NativeValue kTrace[] = {{"int", "code", "4"}, kFaultInfo};
constexpr NativeValue kAccess[] = {{"int", "code", "5"}, kFaultInfo};
constexpr NativeValue kBounds[] = {{"int", "code", "6"}, kFaultInfo};
constexpr NativeValue kOverflow[] = {{"int", "code", "7"}, kFaultInfo};
constexpr NativeValue kDivision[] = {{"int", "code", "8"}, kFaultInfo};
constexpr NativeValue kFloat[] = {{"int", "code", "9"}, kFaultInfo};
constexpr StableArgument kFaultArguments[] = {{"int", 0}, {"k_siginfo_t *", 1}};

// In illumos's order, where several stand at one place: a process's first thread is created, then
// the process.
constexpr StableProbe kProc[] = {
    {"lwp-create", Entry, "wake_up_new_task", kTaskFirst, kThread},
    {"create", Entry, "wake_up_new_task", kTaskFirst, kProcess, "task->pid == task->tgid"},
    {"start", Return, "schedule_tail", {}, {}, "current->pid == current->tgid"},
    {"lwp-start", Return, "schedule_tail"},
    {"lwp-exit", Entry, "taskstats_exit"},
    {"exit", Entry, "taskstats_exit", kExitReason, kInt, "group_dead != 0"},
    {"exec", Entry, "do_execveat_common", kExec, kPath, "path != 0"},
    {"exec", Entry, "kernel_execve", kKernelExec, kPath},
    {"exec-failure", Return, "do_execveat_common", kResult, kInt, "error > 0"},
    {"exec-failure", Return, "kernel_execve", kResult, kInt, "error > 0"},
    {"exec-success", Return, "do_execveat_common", kResult, {}, "error == 0"},
    {"exec-success", Return, "kernel_execve", kResult, {}, "error == 0"},
    {"signal-send", Entry, "complete_signal", kSignal, kSignalled},
    {"signal-clear", Return, "do_sigtimedwait", kTaken, kInt, "signal > 0"},
    {"signal-discard", Tracepoint, "signal_generate", kDiscarded, kSignalled, "outcome == 1"},
    // Above SIG_DFL and SIG_IGN.
    {"signal-handle", Tracepoint, "signal_deliver", kHandled, kHandledArguments, "handler > 1"},
    {"fault", Entry, "force_sig_info_to_task", kIllegal, kFaultArguments, "info->si_signo == 4"},
    {"fault", Entry, "force_sig_info_to_task", kBreakpoint, kFaultArguments,
     "info->si_signo == 5 && info->si_code != 2"},
    {"fault", Entry, "force_sig_info_to_task", kTrace, kFaultArguments,
     "info->si_signo == 5 && info->si_code == 2"},
    {"fault", Entry, "force_sig_info_to_task", kAccess, kFaultArguments, "info->si_signo == 7"},
    {"fault", Entry, "force_sig_info_to_task", kAccess, kFaultArguments,
     "info->si_signo == 11 && info->si_code > 1"},
    {"fault", Entry, "force_sig_info_to_task", kBounds, kFaultArguments,
     "info->si_signo == 11 && info->si_code == 1"},
    {"fault", Entry, "force_sig_info_to_task", kDivision, kFaultArguments,
     "info->si_signo == 8 && info->si_code == 1"},
    {"fault", Entry, "force_sig_info_to_task", kOverflow, kFaultArguments,
     "info->si_signo == 8 && info->si_code == 2"},
    {"fault", Entry, "force_sig_info_to_task", kFloat, kFaultArguments,
     "info->si_signo == 8 && info->si_code > 2"},
};

// sched

/// Whether a task goes to the head of its queue (ENQUEUE_HEAD of kernel/sched/sched.h).
constexpr NativeValue kEnqueued[] = {{"struct task_struct *", "task", "arg1"},
                                     {"struct rq *", "queue", "arg0"},
                                     {"int", "at_head", "arg2 & 16"}};
constexpr NativeValue kDequeued[] = {{"struct task_struct *", "task", "arg1"},
                                     {"struct rq *", "queue", "arg0"}};
constexpr NativeValue kPriorityChange[] = {{"struct task_struct *", "task", "arg0"},
                                           {"int", "nice", "arg1"},
                                           {"int", "priority", "nice + 120"}};
constexpr StableArgument kEnqueuedArguments[] = {
    {"lwpsinfo_t *", 0}, {"psinfo_t *", 0}, {"cpuinfo_t *", 1}, {"int", 2}};
constexpr StableArgument kDequeuedArguments[] = {
    {"lwpsinfo_t *", 0}, {"psinfo_t *", 0}, {"cpuinfo_t *", 1}};
constexpr StableArgument kPriorityChangeArguments[] = {
    {"lwpsinfo_t *", 0}, {"psinfo_t *", 0}, {"int", 2}};

constexpr NativeValue kNext[] = {{"struct task_struct *", "task", "arg2"}};
constexpr NativeValue kWoken[] = {{"struct task_struct *", "task", "arg0"}};
constexpr NativeValue kSwitched[] = {{"int", "preempt", "arg0 & 1"},
                                     {"int", "state", kSwitchedState}};

/// A switch away is counted in the thread that it takes off: one whose counts are the same stayed
/// on.
constexpr std::string_view kSwitchesAway = "current->nvcsw + current->nivcsw";
constexpr NativeValue kToSchedule[] = {{"unsigned long", "switches", kSwitchesAway}};
constexpr StartPlace kSchedules = {.natives = kToSchedule};
constexpr NativeValue kRemained[] = {{"struct task_struct *", "task", "current"},
                                     {"unsigned long", "before", "start0"},
                                     {"unsigned long", "now", kSwitchesAway}};

constexpr StableProbe kSched[] = {
    {"on-cpu", Entry, "finish_task_switch"},
    {"off-cpu", Tracepoint, "sched_switch", kNext, kThread},
    {"enqueue", Entry, "enqueue_task_fair", kEnqueued, kEnqueuedArguments},
    {"enqueue", Entry, "enqueue_task_rt", kEnqueued, kEnqueuedArguments},
    {"enqueue", Entry, "enqueue_task_dl", kEnqueued, kEnqueuedArguments},
    {"enqueue", Entry, "enqueue_task_stop", kEnqueued, kEnqueuedArguments},
    {"dequeue", Entry, "dequeue_task_fair", kDequeued, kDequeuedArguments},
    {"dequeue", Entry, "dequeue_task_rt", kDequeued, kDequeuedArguments},
    {"dequeue", Entry, "dequeue_task_dl", kDequeued, kDequeuedArguments},
    {"dequeue", Entry, "dequeue_task_stop", kDequeued, kDequeuedArguments},
    // Only fair tasks have a nice value that is their priority.
    {"change-pri", Entry, "set_user_nice", kPriorityChange, kPriorityChangeArguments,
     "priority != task->static_prio && task->prio > 99"},
    {"surrender", Entry, "do_sched_yield", kCurrent, kThread},
    {"tick", Entry, "sched_tick|scheduler_tick", kCurrent, kThread},
    // In the thread that wakes: sched_wakeup comes on the CPU that the woken one is put on.
    {"wakeup", Tracepoint, "sched_waking", kWoken, kThread},
    {"sleep", Tracepoint, "sched_switch", kSwitched, {}, "preempt == 0 && state != 0"},
    {"preempt", Tracepoint, "sched_switch", kSwitched, {}, "preempt != 0"},
    {"preempt", Tracepoint, "sched_switch", kSwitched, {}, "preempt == 0 && state == 0"},
    {"remain-cpu",
     OwnReturn,
     "__schedule",
     kRemained,
     {},
     "before == now && task->pid != 0",
     &kSchedules},
    {"schedctl-nopreempt", Nowhere, "no thread of Linux asks so; nearest: sched:::preempt"},
    {"schedctl-preempt", Nowhere, "no thread of Linux asks so; nearest: sched:::preempt"},
    {"schedctl-yield", Nowhere, "no thread of Linux asks so; nearest: sched:::surrender"},
    {"cpucaps-sleep", Nowhere,
     "Linux caps groups, not threads; nearest: fbt::throttle_cfs_rq:entry"},
    {"cpucaps-wakeup", Nowhere,
     "Linux caps groups, not threads; nearest: fbt::unthrottle_cfs_rq:entry"},
};

constexpr StableTable kProcessTables[] = {{"proc", kProc}, {"sched", kSched}};

}  // namespace

std::span<const StableTable> process_tables() {
  return kProcessTables;
}

}  // namespace ringside::providers
