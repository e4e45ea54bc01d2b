#include "vmm/shim/record_rings.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kCopiedAtOnce = 8192;  // bytes
static_assert(kCopiedAtOnce >= FetchList::kMostRecordBytes);

/// All that a record has, but for its place.
void read_registers(std::span<const std::byte> record, Registers& out) {
  using Numbered = std::array<std::uint64_t, SHIM_REGISTERS>;
  set_in_order(load_at<Numbered>(record, SHIM_RECORD_REGS), out);
  out.rflags = load_at<std::uint64_t>(record, SHIM_RECORD_RFLAGS);
  out.cr3 = load_at<std::uint64_t>(record, SHIM_RECORD_CR3);
}

std::optional<TrappedTask::Ids> ids_of(std::span<const std::byte> record, const FetchList& list) {
  if (!list.copies().ids) return std::nullopt;
  return task_ids(load_at<std::uint32_t>(record, SHIM_RECORD_PID),
                  load_at<std::uint32_t>(record, SHIM_RECORD_TGID),
                  load_at<std::uint64_t>(record, SHIM_RECORD_START_TIME));
}

/// A copied record, without its runs. In a trap of ours GS is the per-cpu base, as in all of kernel
/// mode. Only what the list has is looked at: this is most of the host's work for a short record.
void read_record(std::span<const std::byte> record, const FetchList& list, std::size_t ring,
                 const ShimPlace& shim, Trap& out) {
  const auto word = [record](std::size_t at) { return load_at<std::uint64_t>(record, at); };
  out.address = GuestVirt(word(SHIM_RECORD_ADDRESS));
  out.tsc = word(SHIM_RECORD_TSC);
  out.percpu_base = GuestVirt(list.copies_percpu() ? word(SHIM_RECORD_PERCPU) : 0);
  const std::array comm{word(SHIM_RECORD_COMM), word(SHIM_RECORD_COMM + 8)};
  out.task = trapped_task(word(SHIM_RECORD_TASK), comm, ids_of(record, list));
  out.cpu = static_cast<std::uint32_t>(ring / 2);
  const bool has_registers = list.copies().registers;
  has_registers ? read_registers(record, out.registers) : void(out.registers = {});
  set_place(out.registers, out.address, has_registers ? word(SHIM_RECORD_CS) : 0, shim);
  out.registers.gs_base = out.percpu_base.raw();
  out.list = nullptr;
  out.runs = {};
}

}  // namespace

RecordRings::RecordRings(ShimRegion& region, const ShimPresence& presence, const ShimTable& table,
                         const ShimLayout& layout, GuestVirt base)
    : region_(region),
      presence_(presence),
      table_(table),
      layout_(layout),
      rings_(std::size_t{2} * layout.ring_count),
      earlier_words_(layout.ring_count),
      words_(layout.ring_count),
      base_(base),
      place_(layout.place_at(base)),
      lists_(1),
      records_(kCopiedAtOnce) {
  tell_guest();
}

void RecordRings::tell_guest() {
  for (std::size_t n = 0; n < has_room_for_.size(); ++n) {
    has_room_for_[n] = n < lists_.size() && lists_[n].record_bytes() <= record_bytes();
  }
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    const std::array<std::uint64_t, 3> told{most(ring), base_.wrapping_add(records_at(ring)).raw(),
                                            record_bytes()};
    static_assert(SHIM_RING_DATA == SHIM_RING_MOST + sizeof told[0] &&
                  SHIM_RING_RECORD_BYTES == SHIM_RING_DATA + sizeof told[0]);
    // Where it cannot be written the shim is gone, which look() finds.
    (void)region_.write(words_at(ring) + SHIM_RING_MOST, std::as_bytes(std::span(told)));
  }
}

Result<void> RecordRings::set_lists(std::vector<FetchList> lists, bool uses_default) {
  std::size_t bytes = uses_default ? lists_.front().record_bytes() : SHIM_RECORD_SIZE;
  bool has_stack = false;
  for (const FetchList& list : lists) {
    has_stack = has_stack || list.has_stack();
    bytes = std::max(bytes, list.least_record_bytes());
  }
  auto shift = static_cast<unsigned>(std::bit_width(bytes - 1));
  if (bytes > FetchList::kMostRecordBytes || !holds_enough(shift)) {
    return fail(ErrorCode::Limit,
                "the memory for the stub is too small for records with all that is looked at (a "
                "smaller -x strsize may help)");
  }
  // The more room for a stack there is, the fewer traps wait.
  while (has_stack && (2U << shift) <= FetchList::kMostRecordBytes && holds_enough(shift + 1)) {
    ++shift;
  }
  for (FetchList& list : lists) list.fit(std::size_t{1} << shift);
  record_shift_ = shift;
  lists_.resize(1);
  lists_.insert(lists_.end(), std::move_iterator(lists.begin()), std::move_iterator(lists.end()));
  tell_guest();
  return {};
}

bool RecordRings::look() {
  const bool copied = presence_.state() == ShimState::There && !words_.empty() && copy_words();
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    if (copied) {
      note(ring);
    } else {
      rings_[ring].head = rings_[ring].tail;
      rings_[ring].busy = false;
    }
  }
  return copied;
}

/// Twice, for `busy` and then for `head`: a record that was being written at the first copy is
/// either busy there or in the second. x86 keeps the guest's stores in order.
bool RecordRings::copy_words() {
  const GuestPhys at = region_.place().wrapping_add(layout_.rings);
  const std::array<GuestMemory::Part, 2> parts = {
      {{at, std::as_writable_bytes(std::span(earlier_words_))},
       {at, std::as_writable_bytes(std::span(words_))}}};
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool first = region_.memory().read_each(std::span(parts).first(1));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return first && region_.memory().read_each(std::span(parts).last(1));
}

/// A guest that claims more than a ring holds has forged the count, so nothing there is believed.
void RecordRings::note(std::size_t ring) {
  const auto words_of = [ring](const std::vector<shim_ring>& words) -> const shim_ring_words& {
    const shim_ring& both = words[ring / 2];
    return ring % 2 == 0 ? both.first : both.nested;
  };
  Ring& one = rings_[ring];
  one.head = words_of(words_).head;
  one.busy = words_of(earlier_words_).busy != 0;
  if (one.head - one.tail <= most(ring) + 1) return;
  reject(1);
  give_back(ring, one.head);
}

std::uint64_t RecordRings::dropped() const {
  std::uint64_t sum = 0;
  for (const shim_ring& ring : words_) sum += ring.first.dropped + ring.nested.dropped;
  return sum;
}

std::size_t RecordRings::take(std::size_t ring, std::span<Trap> out, std::span<std::byte> runs) {
  Ring& one = rings_[ring];
  const std::size_t at_once = records_.size() / record_bytes();
  std::size_t taken = 0;
  while (taken < out.size() && one.head != one.tail) {
    const std::uint64_t first = one.tail & most(ring);
    const std::size_t count = std::min({waiting(ring), out.size() - taken, at_once,
                                        static_cast<std::size_t>(most(ring) + 1 - first)});
    // As it is now, whatever was read ahead for a trap that is served just then.
    const GuestMemory::Part part{
        region_.place().wrapping_add(records_at(ring) + (first << record_shift_)),
        std::span(records_).first(count << record_shift_)};
    if (!region_.memory().read_each(std::span(&part, 1))) return taken;
    for (std::size_t n = 0; n < count; ++n) {
      const auto record = std::span<const std::byte>(records_).subspan(n << record_shift_);
      const auto head = load_at<std::uint64_t>(record, SHIM_RECORD_HEAD);
      const auto number =
          table_.list_at(GuestVirt(load_at<std::uint64_t>(record, SHIM_RECORD_ADDRESS)));
      // The guest may name any trap point, also one that waits.
      if (head == one.tail + n && number && has_room_for(*number)) {
        const FetchList& list = lists_[*number];
        read_record(record, list, ring, place_, out[taken]);
        if (list.copies_memory()) {
          keep_runs(out[taken], list, record, runs.subspan(taken * run_bytes()).data());
        }
        ++taken;
      } else {
        reject(1);
      }
    }
    give_back(ring, one.tail + count);
  }
  return taken;
}

void RecordRings::keep_runs(Trap& trap, const FetchList& list, std::span<const std::byte> record,
                            std::byte* runs) {
  const std::size_t size = list.record_bytes() - list.runs_at();
  std::memcpy(runs, record.subspan(list.runs_at()).data(), size);
  trap.list = &list;
  trap.runs = {runs, size};
}

void RecordRings::give_back(std::size_t ring, std::uint64_t tail) {
  std::uint64_t before = rings_[ring].tail;
  rings_[ring].tail = tail;
  // A guest that has changed the word itself has a ring that is full, or never is: its own harm.
  if (!region_.replace(words_at(ring) + SHIM_RING_TAIL, before, tail)) reject(1);
}

bool RecordRings::is_any_busy() const {
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    if (region_.load(words_at(ring) + SHIM_RING_BUSY) != 0) return true;
  }
  return false;
}

RecordRings::Counters RecordRings::counters() const {
  Counters sum;
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    sum.records += region_.load(words_at(ring) + SHIM_RING_HEAD);
    sum.dropped += region_.load(words_at(ring) + SHIM_RING_DROPPED);
    sum.unwanted += region_.load(words_at(ring) + SHIM_RING_UNWANTED);
    sum.late += region_.load(words_at(ring) + SHIM_RING_LATE);
  }
  sum.rejected = rejected_.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace ringside::vmm
