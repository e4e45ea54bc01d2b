// The table of lockstat. Names and arguments: the published Dynamic Tracing Guide. Linux's mutex is
// the adaptive lock, its rw_semaphore the readers/writer lock, its raw spinlock the spin lock.
// An acquisition that calls the slow path at the end of a function jumps there: then the slow
// function's return is that of both.
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "providers/stable/stable_tables.h"

namespace ringside::providers {
namespace {

using enum PlaceKind;

constexpr std::string_view kMutexType = "struct mutex *", kSpinType = "raw_spinlock_t *",
                           kRwType = "struct rw_semaphore *", kTimeType = "uint64_t";

/// Of functions that return an int.
constexpr std::string_view kFailed = "result & 4294967295 == 0",
                           kSucceeded = "result & 4294967295 == 1";
/// Of contention_end, which has an error as its second argument.
constexpr std::string_view kNoError = "arg1 & 4294967295 == 0";

constexpr NativeValue kMutex[] = {{kMutexType, "lock", "arg0"}};
constexpr NativeValue kSpin[] = {{kSpinType, "lock", "arg0"}};
constexpr NativeValue kRw[] = {{kRwType, "lock", "arg0"}};
/// The slow path of spin locks takes the whole lock, of another type's name.
constexpr NativeValue kAnyLock[] = {{"unsigned long", "lock", "arg0"}};

/// Inlined by kernels that do not preempt themselves, and _irq with it (kernel/Kconfig.locks).
constexpr std::string_view kUnlock = "_raw_spin_unlock";

constexpr StartPlace kInMutexCall = {.natives = kMutex};
constexpr StartPlace kInSpinCall = {.natives = kSpin};
constexpr StartPlace kInSlowSpinCall = {.natives = kAnyLock};
constexpr StartPlace kInRtMutexCall = {.natives = kAnyLock};
constexpr StartPlace kInRwCall = {.natives = kRw};

constexpr NativeValue kMutexTaken[] = {{kMutexType, "lock", "start0"}};
constexpr NativeValue kMutexRefused[] = {{kMutexType, "lock", "start0"},
                                         {"int", "error", "-result"}};
constexpr NativeValue kSpinTaken[] = {{kSpinType, "lock", "start0"}};
constexpr NativeValue kSpun[] = {{kSpinType, "lock", "start0"}, {kTimeType, "ns", "elapsed"}};

/// As illumos has RW_WRITER and RW_READER, and our lockstat.d.
constexpr NativeValue kRwRead[] = {{kRwType, "lock", "start0"}, {"int", "mode", "1"}};
constexpr NativeValue kRwWritten[] = {{kRwType, "lock", "start0"}, {"int", "mode", "0"}};
constexpr NativeValue kRwReadReleased[] = {{kRwType, "lock", "arg0"}, {"int", "mode", "1"}};
constexpr NativeValue kRwWriteReleased[] = {{kRwType, "lock", "arg0"}, {"int", "mode", "0"}};

// Waiting begins and ends with static tracepoints, since 5.19, that say by flags how (LCB_F_* of
// include/trace/events/lock.h): 1 spins, 2 a reader, 4 a writer, 32 a mutex. A mutex may spin, then
// block, then spin again: that is blocking from the first time on.

constexpr NativeValue kMutexContended[] = {{kMutexType, "lock", "arg0"}, {"int", "flags", "arg1"}};
constexpr NativeValue kMutexWaited[] = {{kMutexType, "lock", "arg0"}, {kTimeType, "ns", "elapsed"}};
constexpr StartPlace kMutexBlocks = {.of = StartPlace::Of::TaskAndObject,
                                     .kind = Tracepoint,
                                     .place = "contention_begin",
                                     .natives = kMutexContended,
                                     .condition = "flags == 32"};
constexpr StartPlace kMutexSpins = {.of = StartPlace::Of::TaskAndObject,
                                    .kind = Tracepoint,
                                    .place = "contention_begin",
                                    .natives = kMutexContended,
                                    .condition = "flags == 33",
                                    .spoilt_when = "flags == 32"};
// A real-time kernel's mutex is a rt_mutex, its first member. A wait for one has the flag 8 alone,
// also where it spins for an owner that runs.
constexpr NativeValue kRtMutexContended[] = {{kMutexType, "lock", "arg0"},
                                             {"int", "flags", "arg1"}};
constexpr StartPlace kRtMutexBlocks = {.of = StartPlace::Of::TaskAndObject,
                                       .kind = Tracepoint,
                                       .place = "contention_begin",
                                       .natives = kRtMutexContended,
                                       .condition = "flags == 8"};

/// Of a semaphore's count the lowest bit is a writer, bits 8 and up are the readers.
std::uint64_t readers_of(std::uint64_t count) {
  constexpr unsigned kFirstBit = 8;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(count) >> kFirstBit);
}
constexpr NativeValue kRwContended[] = {
    {kRwType, "lock", "arg0"}, {"long", "count", "lock->count.counter"}, {"int", "flags", "arg1"}};
constexpr NativeValue kRwReadWaited[] = {{kRwType, "lock", "arg0"},
                                         {kTimeType, "ns", "elapsed"},
                                         {"int", "mode", "1"},
                                         {"int", "was_written", "start1 & 1"},
                                         {"long", "readers", "start1", readers_of}};
constexpr NativeValue kRwWriteWaited[] = {{kRwType, "lock", "arg0"},
                                          {kTimeType, "ns", "elapsed"},
                                          {"int", "mode", "0"},
                                          {"int", "was_written", "start1 & 1"},
                                          {"long", "readers", "start1", readers_of}};
constexpr StartPlace kRwReadBlocks = {.of = StartPlace::Of::TaskAndObject,
                                      .kind = Tracepoint,
                                      .place = "contention_begin",
                                      .natives = kRwContended,
                                      .condition = "flags == 2"};
constexpr StartPlace kRwWriteBlocks = {.of = StartPlace::Of::TaskAndObject,
                                       .kind = Tracepoint,
                                       .place = "contention_begin",
                                       .natives = kRwContended,
                                       .condition = "flags == 4"};

/// Functions that tell of contention for other locks: a slow spin lock of somebody else's costs
/// nothing then, and one of their sites where no probe can stand is none of ours.
template <std::size_t kOwn>
constexpr auto and_other_locks(const std::string_view (&own)[kOwn]) {
  constexpr std::string_view kOthers[] = {"queued_",           "native_queued_", "__pv_queued_",
                                          "resilient_queued_", "percpu_down_",   "__percpu_down_",
                                          "__down_common",     "__rt_mutex_",    "rt_mutex_"};
  std::array<std::string_view, kOwn + std::size(kOthers)> all;
  std::ranges::copy(kOthers, std::ranges::copy(own, all.begin()).out);
  return all;
}
constexpr auto kNotOfMutexes = and_other_locks({"rwsem_down_"});
/// Its spin locks and semaphores wait by the same code, each source file with a copy of its own.
constexpr std::string_view kNotOfRtMutexes[] = {
    "rtlock_",           "rt_read_",     "rt_write_",      "rwbase_",
    "__rwbase_",         "queued_",      "native_queued_", "__pv_queued_",
    "resilient_queued_", "percpu_down_", "__percpu_down_", "__down_common"};
constexpr std::string_view kRtSemaphores[] = {"rwbase_", "__rwbase_", "down_read", "down_write"};
constexpr auto kNotOfReaders = and_other_locks({"rwsem_down_write_", "__mutex_", "__ww_mutex_"});
constexpr auto kNotOfWriters = and_other_locks({"rwsem_down_read_", "__mutex_", "__ww_mutex_"});

constexpr StableProbe kLockstat[] = {
    {"adaptive-acquire", OwnReturn, "mutex_lock", kMutexTaken, {}, "", &kInMutexCall},
    {"adaptive-acquire",
     OwnReturn,
     "mutex_lock_interruptible",
     kMutexTaken,
     {},
     kFailed,
     &kInMutexCall},
    {"adaptive-acquire", OwnReturn, "mutex_lock_killable", kMutexTaken, {}, kFailed, &kInMutexCall},
    {"adaptive-acquire", OwnReturn, "mutex_trylock", kMutexTaken, {}, kSucceeded, &kInMutexCall},
    {.name = "adaptive-acquire",
     .kind = OwnReturn,
     .place = "__mutex_lock",
     .natives = kMutexTaken,
     .condition = kFailed,
     .start = &kInMutexCall,
     .kernels = KernelForm::Usual},
    {.name = "adaptive-acquire",
     .kind = OwnReturn,
     .place = "rt_mutex_slowlock",
     .natives = kMutexTaken,
     .condition = kFailed,
     .start = &kInRtMutexCall,
     .kernels = KernelForm::RealTime,
     .or_in_callers = true},
    {"adaptive-acquire-error",
     OwnReturn,
     "__mutex_lock|rt_mutex_slowlock",
     kMutexRefused,
     {},
     "error > 0",
     &kInRtMutexCall},
    {.name = "adaptive-block",
     .kind = Tracepoint,
     .place = "contention_end",
     .natives = kMutexWaited,
     .condition = kNoError,
     .start = &kMutexBlocks,
     .never_in = kNotOfMutexes,
     .kernels = KernelForm::Usual},
    {.name = "adaptive-block",
     .kind = Tracepoint,
     .place = "contention_end",
     .natives = kMutexWaited,
     .condition = kNoError,
     .start = &kRtMutexBlocks,
     .never_in = kNotOfRtMutexes,
     .never_called_by = kRtSemaphores,
     .kernels = KernelForm::RealTime},
    {.name = "adaptive-spin",
     .kind = Tracepoint,
     .place = "contention_end",
     .natives = kMutexWaited,
     .condition = kNoError,
     .start = &kMutexSpins,
     .never_in = kNotOfMutexes,
     .kernels = KernelForm::Usual},
    {.name = "adaptive-spin",
     .kind = Nowhere,
     .place = "a real-time kernel does not tell who spins; nearest: lockstat:::adaptive-block",
     .kernels = KernelForm::RealTime},
    {"adaptive-release", Entry, "mutex_unlock", kMutex},
    {"spin-acquire", OwnReturn, "_raw_spin_lock", kSpinTaken, {}, "", &kInSpinCall},
    {"spin-acquire", OwnReturn, "_raw_spin_lock_bh", kSpinTaken, {}, "", &kInSpinCall},
    {"spin-acquire", OwnReturn, "_raw_spin_lock_irq", kSpinTaken, {}, "", &kInSpinCall},
    {"spin-acquire", OwnReturn, "_raw_spin_lock_irqsave", kSpinTaken, {}, "", &kInSpinCall},
    {"spin-acquire", OwnReturn, "_raw_spin_trylock", kSpinTaken, {}, kSucceeded, &kInSpinCall},
    {"spin-acquire", OwnReturn, "_raw_spin_trylock_bh", kSpinTaken, {}, kSucceeded, &kInSpinCall},
    {"spin-spin", OwnReturn, "native_queued_spin_lock_slowpath", kSpun, {}, "", &kInSlowSpinCall},
    {"spin-spin", OwnReturn, "__pv_queued_spin_lock_slowpath", kSpun, {}, "", &kInSlowSpinCall},
    {"spin-release", Entry, "_raw_spin_unlock", kSpin},
    {"spin-release", Entry, "_raw_spin_unlock_bh", kSpin, {}, "", nullptr, {}, kUnlock},
    {"spin-release", Entry, "_raw_spin_unlock_irq", kSpin, {}, "", nullptr, {}, kUnlock},
    {"spin-release", Entry, "_raw_spin_unlock_irqrestore", kSpin, {}, "", nullptr, {}, kUnlock},
    {"thread-spin", Nowhere, "Linux has no locks of threads; nearest: lockstat:::spin-spin"},
    {"rw-acquire", OwnReturn, "down_read", kRwRead, {}, "", &kInRwCall},
    {"rw-acquire", OwnReturn, "down_read_interruptible", kRwRead, {}, kFailed, &kInRwCall},
    {"rw-acquire", OwnReturn, "down_read_killable", kRwRead, {}, kFailed, &kInRwCall},
    {"rw-acquire", OwnReturn, "down_read_trylock", kRwRead, {}, kSucceeded, &kInRwCall},
    {"rw-acquire", OwnReturn, "down_write", kRwWritten, {}, "", &kInRwCall},
    {"rw-acquire", OwnReturn, "down_write_killable", kRwWritten, {}, kFailed, &kInRwCall},
    {"rw-acquire", OwnReturn, "down_write_trylock", kRwWritten, {}, kSucceeded, &kInRwCall},
    {.name = "rw-block",
     .kind = Tracepoint,
     .place = "contention_end",
     .natives = kRwReadWaited,
     .condition = kNoError,
     .start = &kRwReadBlocks,
     .never_in = kNotOfReaders},
    {.name = "rw-block",
     .kind = Tracepoint,
     .place = "contention_end",
     .natives = kRwWriteWaited,
     .condition = kNoError,
     .start = &kRwWriteBlocks,
     .never_in = kNotOfWriters},
    {"rw-downgrade", Entry, "downgrade_write", kRw},
    {"rw-release", Entry, "up_read", kRwReadReleased},
    {"rw-release", Entry, "up_write", kRwWriteReleased},
    {"rw-upgrade", Nowhere, "no lock of Linux is upgraded; nearest: lockstat:::rw-acquire"},
};

constexpr StableTable kLockTables[] = {{"lockstat", kLockstat}};

}  // namespace

std::span<const StableTable> lock_tables() {
  return kLockTables;
}

}  // namespace ringside::providers
