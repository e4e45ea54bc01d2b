#include "providers/context/linux_locks.h"

#include "vmm/linux/constants.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kWriterLocked = 1 << 0, kSomebodyWaits = 1 << 1;
constexpr unsigned kReaderShift = 8;
constexpr std::uint64_t kReaders = (UINT64_MAX >> 1) >> kReaderShift;

}  // namespace

Result<std::uint64_t, Fault> lock_of_linux(const GuestReader& kernel, dif::LockFact which,
                                           GuestVirt lock) {
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
