#include "providers/context/linux_locks.h"

#include "vmm/linux/constants.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kWriterLocked = 1 << 0, kSomebodyWaits = 1 << 1;
constexpr unsigned kReaderShift = 8;
constexpr std::uint64_t kReaders = (UINT64_MAX >> 1) >> kReaderShift;

// READER_BIAS and WRITER_BIAS of include/linux/rwbase_rt.h. Whoever wants to write takes the
// readers' away first.
constexpr std::uint32_t kNoWriter = 1U << 31, kRtWriterLocked = 1U << 30;

}  // namespace

LinuxLocks::LinuxLocks(const TypeGraph& types) {
  const auto owner = guest_linux::offset_of(types, "mutex", {"rtmutex", "owner"});
  const auto readers = guest_linux::offset_of(types, "rw_semaphore", {"rwbase", "readers"});
  if (owner && readers) realtime_ = Offsets{*owner, *readers};
}

Result<std::uint64_t, Fault> LinuxLocks::realtime_fact(const GuestReader& kernel,
                                                       dif::LockFact which, GuestVirt lock) const {
  if (which == dif::LockFact::Owner) {
    const GuestVirt at = lock.wrapping_add(realtime_->owner);
    return TRY(load<std::uint64_t>(kernel, at)) & ~guest_linux::kRtMutexHasWaiters;
  }
  const auto word = TRY(load<std::uint32_t>(kernel, lock.wrapping_add(realtime_->readers)));
  switch (which) {
    case dif::LockFact::ReadHeld: return (word & ~(kNoWriter | kRtWriterLocked)) != 0 ? 1 : 0;
    case dif::LockFact::WriteHeld: return (word & kRtWriterLocked) != 0 ? 1 : 0;
    case dif::LockFact::HasWriter: return (word & kNoWriter) == 0 ? 1 : 0;
    // As of all kernels: every struct mutex sleeps.
    case dif::LockFact::Owner:
    case dif::LockFact::Adaptive: return 1;
    case dif::LockFact::Spins: return 0;
  }
  return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
}

Result<std::uint64_t, Fault> LinuxLocks::fact(const GuestReader& kernel, dif::LockFact which,
                                              GuestVirt lock) const {
  if (realtime_) return realtime_fact(kernel, which, lock);
  const auto word = TRY(load<std::uint64_t>(kernel, lock));
  switch (which) {
    case dif::LockFact::Owner: return word & ~guest_linux::kMutexFlags;
    // Every struct mutex sleeps, after spinning while its owner runs. Spin locks have another type.
    case dif::LockFact::Adaptive: return 1;
    case dif::LockFact::Spins: return 0;
    case dif::LockFact::ReadHeld:
      return (word & kWriterLocked) == 0 && (word >> kReaderShift & kReaders) != 0 ? 1 : 0;
    case dif::LockFact::WriteHeld: return word & kWriterLocked;
    // A reader waits for writers only, so a waiter means one.
    case dif::LockFact::HasWriter: return (word & (kWriterLocked | kSomebodyWaits)) != 0 ? 1 : 0;
  }
  return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
}

}  // namespace ringside::providers
