// In this file, top to bottom: copying records, what may fire, firing.
#include "providers/fire/replay.h"

#include <algorithm>
#include <mutex>

#include "providers/clock/host_clock.h"
#include "providers/fire/poller.h"
#include "vmm/base/host_cpu.h"

namespace ringside::providers {
namespace {

// ns. A CPU shows its stores to others by then: a cache miss or two.
constexpr std::uint64_t kStoreBuffer = 2'000;
constexpr std::uint64_t kWaitForRecord = 1'000'000;  // ns; catch_up() waits for no longer
constexpr std::uint64_t kBetweenLooks = 20'000;      // ns, then
constexpr std::uint64_t kPass = 1'000'000;  // ns; then others of the fire thread's duties are due
constexpr std::uint64_t kBeat = 1'000'000;  // ns, between heartbeats
constexpr unsigned kMostLooks = 64;         // a guest may write on and on

}  // namespace

Replay::Replay(vmm::Mailboxes& shim, vmm::RecordRings& rings, TrapDispatcher& dispatcher,
               GuestClock& clock)
    : shim_(shim),
      rings_(rings),
      dispatcher_(dispatcher),
      clock_(clock),
      queues_(rings.size(), Queue(rings)) {
  for (Queue& queue : queues_) queue.quiet = host_tsc();  // the shim is not active yet
  held_.reserve(rings.size() + 1);
}

/// Looks at the rings, copies what is new, and works out what may fire. Returns how many records
/// the fullest ring held.
std::size_t Replay::fetch() {
  const std::uint64_t now = host_tsc();
  std::size_t most = 0;
  if (rings_.look()) {
    const std::uint64_t looked = host_tsc();  // all that is there came before
    for (std::size_t ring = 0; ring < queues_.size(); ++ring) {
      most = std::max(most, rings_.waiting(ring));
      take(ring, looked);
    }
    note_drops(looked);
  }
  find_held(now);
  return most;
}

/// `looked` is the host's TSC after the look.
void Replay::note_drops(std::uint64_t looked) {
  const std::uint64_t now = clock_.moment(looked);
  const std::uint64_t dropped = rings_.dropped();
  if (looked_ != 0 && dropped > dropped_) {
    if (drops_until_.load(std::memory_order_relaxed) == 0) {
      drops_from_.store(looked_, std::memory_order_relaxed);
    }
    drops_until_.store(now, std::memory_order_relaxed);
  }
  dropped_ = dropped;
  looked_ = now;
}

void Replay::take(std::size_t ring, std::uint64_t looked) {
  Queue& queue = queues_[ring];
  const std::size_t capacity = queue.traps.size();
  while (rings_.waiting(ring) != 0 && queue.count < capacity) {
    const std::size_t place = (queue.first + queue.count) % capacity;
    const std::size_t room = std::min({kAtOnce, capacity - queue.count, capacity - place});
    const auto traps = std::span(queue.traps).subspan(place, room);
    const auto runs =
        std::span(queue.runs).subspan(place * rings_.run_bytes(), room * rings_.run_bytes());
    const std::size_t taken = rings_.take(ring, traps, runs);
    const auto times = std::span(queue.times).subspan(place, taken);
    std::ranges::transform(traps.first(taken), times.begin(), &vmm::Trap::tsc);
    clock_.recorded_times(times, queue.quiet, looked);
    for (std::size_t n = 0; n < taken; ++n) {
      const std::uint64_t tsc = traps[n].tsc;
      queue.last_time = clock_.after(queue.last_time, tsc - queue.last_tsc, times[n]);
      queue.last_tsc = tsc;
      times[n] = queue.last_time;
    }
    queue.count += taken;
    if (taken == 0 && rings_.waiting(ring) != 0) return;  // it cannot be read any more
  }
}

/// `now` is the host's TSC before the look.
void Replay::find_held(std::uint64_t now) {
  held_.clear();
  for (std::size_t ring = 0; ring < queues_.size(); ++ring) {
    Queue& queue = queues_[ring];
    if (!rings_.is_busy(ring) && rings_.waiting(ring) == 0) {
      queue.quiet = now;
    } else if (clock_.rate().nanoseconds(now - queue.quiet) < kLongestRecord) {
      held_.push_back({queue.last_tsc, clock_.moment(queue.quiet)});
    }
  }
  const std::uint64_t moment = clock_.moment(now);
  horizon_ = moment - std::min(moment, kStoreBuffer);
  moment_ = clock_.at(now);
}

/// Whether more looks are to tell of the guest's clock before anything fires. `most`: as of fetch().
bool Replay::is_settling(std::uint64_t now, std::size_t most) {
  if (clock_.is_settled()) return false;
  if (first_found_ == 0 && next().queue != nullptr) first_found_ = now;
  return first_found_ == 0 || (clock_.rate().nanoseconds(now - first_found_) < kSettling &&
                               most < rings_.capacity() / 2);
}

/// The records that were kept get the times that are known by now.
void Replay::settle() {
  clock_.settle();
  for (Queue& queue : queues_) {
    std::uint64_t last_time = 0, last_tsc = 0;
    for (std::size_t n = 0; n < queue.count; ++n) {
      const std::size_t place = (queue.first + n) % queue.traps.size();
      const std::uint64_t tsc = queue.traps[place].tsc;
      // The line has only moved back. A forged TSC keeps the time that it was given instead.
      const std::uint64_t time = std::min(queue.times[place], clock_.time_of_tsc(tsc));
      last_time = queue.times[place] = clock_.after(last_time, tsc - last_tsc, time);
      last_tsc = tsc;
    }
    queue.last_time = last_time;
  }
}

/// Whether no earlier trap can come any more.
bool Replay::is_certain(const Recorded& recorded) const {
  return recorded.time <= horizon_ && std::ranges::all_of(held_, [&](const Held& held) {
           return recorded.trap.tsc <= held.tsc || recorded.time <= held.time;
         });
}

bool Replay::is_all_fetched() const {
  for (std::size_t ring = 0; ring < queues_.size(); ++ring) {
    if (rings_.waiting(ring) != 0) return false;
  }
  return true;
}

/// Whether all that lies in rings and is not copied yet came later.
bool Replay::is_fetched(const Recorded& recorded) const {
  for (std::size_t ring = 0; ring < queues_.size(); ++ring) {
    if (rings_.waiting(ring) != 0 && recorded.trap.tsc > queues_[ring].last_tsc) return false;
  }
  return true;
}

/// The first one has fired.
void Replay::Queue::pop() {
  if (++first == traps.size()) first = 0;
  --count;
  owed -= std::min<std::size_t>(owed, 1);
}

/// Whose first record comes first, and how long it stays so; none where all are empty.
Replay::Turn Replay::next() {
  Turn turn;
  std::uint64_t earliest = UINT64_MAX;
  for (Queue& queue : queues_) {
    if (queue.count == 0) continue;
    const std::uint64_t tsc = queue.tsc();
    if (turn.queue != nullptr && tsc >= earliest) {
      turn.until = std::min(turn.until, tsc);
    } else {
      turn = {&queue, earliest};
      earliest = tsc;
    }
  }
  return turn;
}

template <class Wanted>
void Replay::fire_while(Wanted wanted) {
  if (!clock_.is_settled() && next().queue != nullptr) settle();
  for (Turn turn = next(); turn.queue != nullptr; turn = next()) {
    do {
      look_at_time();
      const Recorded recorded = turn.queue->front();
      if (!wanted(recorded)) return;
      if (recorded.trap.tsc < fired_) late_.fetch_add(1, std::memory_order_relaxed);
      fired_ = recorded.trap.tsc;
      dispatcher_.replay(recorded.trap, recorded.time, moment_);
      turn.queue->pop();
    } while (turn.goes_on());
  }
}

/// Between two firings. Traps that wait meanwhile see that the host lives.
void Replay::look_at_time() {
  now_ = host_tsc();
  if (clock_.rate().nanoseconds(now_ - beat_) <= kBeat) return;
  beat_ = now_;
  moment_ = clock_.at(now_);
  shim_.heartbeat();
}

double Replay::pass() {
  const std::lock_guard lock(lock_);
  const std::uint64_t now = host_tsc();
  const bool anybody_waits = !shim_.quiescent();
  const std::size_t most = fetch();
  // A trap that waits has come before the look, and will fire with the time when it came.
  if (!anybody_waits) nobody_waited_ = now;
  if (anybody_waits) held_.push_back({0, clock_.moment(nobody_waited_)});
  const double full = static_cast<double>(most) / static_cast<double>(rings_.capacity());
  if (is_settling(now, most)) return full;
  // Some fire in any case, however slow the host is.
  const std::uint64_t begun = host_tsc();
  std::size_t fired = 0;
  fire_while([&](const Recorded& recorded) {
    return is_certain(recorded) &&
           (fired++ < kAtOnce || clock_.rate().nanoseconds(now_ - begun) < kPass);
  });
  return full;
}

/// Under the lock: those that are wanted, which are all before `time`. A CPU that stands still in
/// the middle of a record is not waited for long; what is in the rings is fetched in any case.
template <class Wanted>
void Replay::fire_all(std::uint64_t time, Wanted wanted) {
  const std::uint64_t begun = host_tsc();
  for (unsigned looks = 0; looks < kMostLooks; ++looks) {
    (void)fetch();
    fire_while([&](const Recorded& recorded) { return is_certain(recorded) && wanted(recorded); });
    const bool may_come = horizon_ < time || std::ranges::any_of(held_, [time](const Held& held) {
                            return held.time < time;
                          });
    const std::uint64_t waited = clock_.rate().nanoseconds(host_tsc() - begun);
    if (!may_come || waited > kWaitForRecord) break;
    waited < kBetweenLooks ? cpu_relax() : sleep_ns(kBetweenLooks);
  }
  for (unsigned looks = 0; looks < kMostLooks; ++looks) {
    fire_while([&](const Recorded& recorded) { return wanted(recorded) && is_fetched(recorded); });
    if (is_all_fetched()) return;
    (void)fetch();
  }
  fire_while(wanted);
}

void Replay::catch_up() {
  const std::lock_guard lock(lock_);
  const std::uint64_t time = clock_.moment(host_tsc());
  fire_all(time, [time](const Recorded& recorded) { return recorded.time <= time; });
}

/// By their number: a record may have a time that is later than now, until the host knows more of
/// the guest's clock.
void Replay::empty_rings() {
  const std::lock_guard lock(lock_);
  (void)fetch();
  for (std::size_t ring = 0; ring < queues_.size(); ++ring) {
    queues_[ring].owed = queues_[ring].count + rings_.waiting(ring);
  }
  fire_all(clock_.moment(host_tsc()), [this](const Recorded&) {
    return std::ranges::any_of(queues_, [](const Queue& queue) { return queue.owed != 0; });
  });
  for (Queue& queue : queues_) queue.owed = 0;  // those that were no traps of ours
}

void Replay::on_trap(const vmm::Trap& trap) {
  const std::lock_guard lock(lock_);
  fire_all(clock_.moment(host_tsc()),
           [&trap](const Recorded& recorded) { return recorded.trap.tsc < trap.tsc; });
  dispatcher_.on_trap(trap);
}

void Replay::drain() {
  const std::lock_guard lock(lock_);
  bool any = true;
  for (unsigned looks = 0; any && looks < kMostLooks; ++looks) {
    (void)fetch();
    any = next().queue != nullptr;
    fire_while([](const Recorded&) { return true; });
  }
}

}  // namespace ringside::providers
