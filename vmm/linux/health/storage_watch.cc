#include "vmm/linux/health/storage_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace ringside::guest_linux {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{5};
/// An answer that is no older is as good as one now.
constexpr milliseconds kJustNow{20};

}  // namespace

StorageWatch::StorageWatch(const vmm::GuestMemory& memory, const Kernel& kernel)
    : reader_(memory, kernel.table()),
      view_(kernel, reader_),
      clocks_(view_),
      requests_(view_, clocks_) {}

/// Forgets requests that have ended.
std::optional<StorageWatch::Oldest> StorageWatch::look(Time::time_point now) {
  reader_.forget();
  clocks_.read();
  std::map<Request, Time::time_point> seen;
  std::optional<Oldest> oldest;
  for (const DiskReport& disk : requests_.read().disks) {
    for (const RequestReport& request : disk.requests) {
      Request key{disk.name, request.sector, request.operation};
      const auto known = first_seen_.find(key);
      const auto since = known == first_seen_.end() ? now : known->second;
      const auto by_guest = std::chrono::nanoseconds(request.age.value_or(0));
      const auto age = std::max<Time::duration>(now - since, by_guest);
      if (!oldest || age > oldest->age) oldest = {disk.name, disk.in_flight, age};
      seen.emplace(std::move(key), since);
    }
  }
  first_seen_ = std::move(seen);
  last_look_ = now;
  return oldest;
}

/// Whether a request of that look is still there, so that nobody can tell how old it is.
bool StorageWatch::is_unsettled(Time::time_point first_look) const {
  return std::ranges::any_of(first_seen_,
                             [&](const auto& each) { return each.second == first_look; });
}

tl::unexpected<Error> StorageWatch::no_answer(const Oldest& oldest) {
  const std::chrono::duration<double> age = oldest.age;
  return fail(
      ErrorCode::Io,
      fmt::format("its storage does not answer, which a pause would wait for: {} has {} "
                  "request{} in flight, the oldest for {:.1f} s",
                  oldest.disk, oldest.in_flight, oldest.in_flight == 1 ? "" : "s", age.count()));
}

Result<void> StorageWatch::look_once(milliseconds limit) {
  const auto oldest = look(Time::now());
  if (oldest && oldest->age >= limit) return no_answer(*oldest);
  return {};
}

Result<void> StorageWatch::await(milliseconds limit) {
  const Time::time_point began = Time::now();
  const auto since_last = began - last_look_;
  if (since_last < kJustNow && first_seen_.empty()) return {};
  for (Time::time_point now = began;; now = Time::now()) {
    const auto oldest = look(now);
    if (!oldest) return {};
    const bool is_known = since_last < kSlow || !is_unsettled(began);
    if (oldest->age < kSlow && is_known) return {};
    if (oldest->age >= limit) return no_answer(*oldest);
    if (now - began >= limit) return {};
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace ringside::guest_linux
