// Constants of Linux that more than one file needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringside::guest_linux {

/// Characters of a symbol's name with its NUL: KSYM_NAME_LEN (include/linux/kallsyms.h) since 6.1;
/// it was 128 before.
inline constexpr std::size_t kMostSymbolName = 512;
/// Bytes of a file's name without its NUL: NAME_MAX (include/uapi/linux/limits.h).
inline constexpr std::size_t kMostFileName = 255;
/// Bytes of a task's name: TASK_COMM_LEN (include/linux/sched.h).
inline constexpr std::size_t kCommBytes = 16;
/// Bytes of a build id that are believed. Linkers write 16 or 20 (--build-id).
inline constexpr std::size_t kMostBuildId = 64;
/// CPUs of x86's kernels: the most that CONFIG_NR_CPUS takes (arch/x86/Kconfig).
inline constexpr std::uint32_t kMostCpus = 8192;
/// Bits of a mutex's owner that are no part of the task's address: MUTEX_FLAGS
/// (kernel/locking/mutex.h).
inline constexpr std::uint64_t kMutexFlags = 7;
/// The same of a rt_mutex, which a real-time kernel's mutexes are: RT_MUTEX_HAS_WAITERS
/// (kernel/locking/rtmutex_common.h).
inline constexpr std::uint64_t kRtMutexHasWaiters = 1;
/// linux_banner, the line that names a kernel's release and build (init/version.c), begins so; the
/// release follows.
inline constexpr std::string_view kBannerStart = "Linux version ";

}  // namespace ringside::guest_linux
