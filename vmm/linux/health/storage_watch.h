// Whether a guest's storage answers. A stop by QEMU's monitor first waits until every request in
// flight has ended (the block layer drains). If the storage hangs, the stop comes much too late,
// and the monitor serves nobody meanwhile. So code that pauses a running guest by a monitor asks
// here first. Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/health/block_requests.h"
#include "vmm/linux/health/clocks.h"
#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/kernel.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {

class StorageWatch {
 public:
  using Time = std::chrono::steady_clock;
  /// A request that takes longer is waited for before the guest is stopped.
  static constexpr std::chrono::milliseconds kSlow{100};

  /// Both must outlive it.
  StorageWatch(const vmm::GuestMemory& memory, const Kernel& kernel);

  /// Returns when no request is slow, or after `limit`: then all those that were there have ended,
  /// and others have come. Error (Io), naming the disk, once one has been in flight for `limit`. A
  /// kernel whose types do not tell of requests has none.
  Result<void> await(std::chrono::milliseconds limit);
  /// The same without waiting, while a vCPU is held: requests may have ended that it has not heard
  /// of.
  Result<void> look_once(std::chrono::milliseconds limit);

 private:
  /// A request, as far as it can be told from others: disk, sector, operation.
  using Request = std::tuple<std::string, std::uint64_t, std::string>;
  struct Oldest {
    std::string disk;
    std::uint64_t in_flight = 0;
    Time::duration age{};
  };
  std::optional<Oldest> look(Time::time_point now);
  static tl::unexpected<Error> no_answer(const Oldest& oldest);
  bool is_unsettled(Time::time_point first_look) const;

  vmm::PageTableReader reader_;
  KernelView view_;
  Clocks clocks_;
  BlockRequests requests_;
  // By the host's clock, since the guest's may stand still while nothing runs there.
  std::map<Request, Time::time_point> first_seen_;
  Time::time_point last_look_{};
};

}  // namespace ringside::guest_linux
