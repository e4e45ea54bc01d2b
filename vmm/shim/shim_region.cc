#include "vmm/shim/shim_region.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "vmm/base/check.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kGone = ~std::uint64_t{0};

/// Words that the guest may be writing: each is loaded once.
template <std::size_t kWords>
void copy_words(std::uint64_t* to, const std::uint64_t* from) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kWords; ++i) to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

}  // namespace

bool clear_memory(GuestMemory& memory, GuestPhys at, std::uint64_t size) {
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(size, 1 << 20));
  for (std::uint64_t done = 0; done < size; done += zeros.size()) {
    const auto now = std::span(zeros).first(std::min<std::uint64_t>(zeros.size(), size - done));
    if (!memory.write(at.wrapping_add(done), now)) return false;
  }
  return true;
}

namespace {

/// Zeros, from the start of a page on. QEMU hears of one in each page that has changed: if it moves
/// the guest to another host meanwhile, it sends a page again only if it knows of the change.
bool clear_and_tell(PausedMachine& machine, GuestPhys at, std::uint64_t size) {
  std::vector<std::byte> held(size);
  if (!machine.memory().read(at, held)) return false;
  std::vector<CodeWrite> told;
  for (std::uint64_t from = 0; from < size; from += arch::kPageSize) {
    const auto page = std::span(held).subspan(from, std::min(arch::kPageSize, size - from));
    const bool changes =
        std::ranges::any_of(page, [](std::byte one) { return one != std::byte{0}; });
    if (changes) told.push_back({at.wrapping_add(from), 0});
  }
  return clear_memory(machine.memory(), at, size) && (told.empty() || machine.write_code(told));
}

}  // namespace

/// The header goes last: a tracer that is killed here leaves what the next one finds.
Result<void> clear_region(PausedMachine& machine, const ShimLayout& layout,
                          std::uint64_t slot_bytes) {
  const auto clear = [&](std::uint64_t from, std::uint64_t to) {
    const GuestPhys at = layout.place.wrapping_add(from);
    // A card, which has large pages, lets nobody move the guest.
    return layout.page_bytes == kShimLargePage ? clear_memory(machine.memory(), at, to - from)
                                               : clear_and_tell(machine, at, to - from);
  };
  const auto clear_code = [&](std::uint64_t from, std::uint64_t size) {
    return machine.clear_code(layout.place.wrapping_add(from), size);
  };
  TRY(clear_code(layout.slots, std::min(slot_bytes, layout.slots_bytes)));
  TRY(clear_code(SHIM_HEADER_SIZE, SHIM_CODE_SIZE - SHIM_HEADER_SIZE));
  if (clear(layout.data, layout.taken()) && clear(SHIM_CODE_SIZE, layout.slots) &&
      clear(0, SHIM_CODE_SIZE)) {
    return {};
  }
  return fail(ErrorCode::Io, "the shim's memory cannot be written");
}

ShimRegion::ShimRegion(GuestMemory& memory, GuestPhys place, std::uint64_t size, std::uint64_t data)
    : memory_(memory),
      place_(place),
      size_(size),
      data_(data),
      mapped_(memory.mapping(place, size).data()) {
  static_assert(SHIM_PAGE == arch::kPageSize);
  CHECK(data_ % SHIM_PAGE == 0 && data_ <= size_ && size_ - data_ >= SHIM_DATA_SIZE);
}

std::uint64_t ShimRegion::load_copy(std::uint64_t offset) const {
  // This system call sees the writes of earlier ones.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::uint64_t now = 0;
  const GuestMemory::Part part{at(offset), std::as_writable_bytes(std::span(&now, 1))};
  return memory_.read_each(std::span(&part, 1)) ? now : kGone;
}

bool ShimRegion::replace(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired) {
  if (mapped_ == nullptr) [[unlikely]] {
    const std::lock_guard lock(copy_lock_);
    return replace_copy(offset, expected, desired);
  }
  if (ended_.load(std::memory_order_relaxed)) return false;
  return __atomic_compare_exchange_n(word(offset), &expected, desired, /*weak=*/false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/// Under copy_lock_.
bool ShimRegion::replace_copy(std::uint64_t offset, std::uint64_t& expected,
                              std::uint64_t desired) {
  if (ended_.load(std::memory_order_relaxed)) return false;
  const std::uint64_t now = load_copy(offset);
  if (now != expected) {
    expected = now;
    return false;
  }
  return memory_.store64(at(offset), desired);
}

bool ShimRegion::replace_after_look(std::uint64_t offset, std::uint64_t& expected,
                                    std::uint64_t desired,
                                    std::chrono::steady_clock::time_point looked) {
  if (mapped_ != nullptr) [[likely]]
    return replace(offset, expected, desired);
  const std::lock_guard lock(copy_lock_);
  const bool just_past = std::chrono::steady_clock::now() - looked < kJustPast;
  if (!just_past) return replace_copy(offset, expected, desired);
  return !ended_.load(std::memory_order_relaxed) && memory_.store64(at(offset), desired);
}

bool ShimRegion::end_with(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired) {
  const std::lock_guard lock(copy_lock_);
  const bool done = mapped_ == nullptr ? replace_copy(offset, expected, desired)
                                       : __atomic_compare_exchange_n(
                                             word(offset), &expected, desired, /*weak=*/false,
                                             __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  ended_.store(true, std::memory_order_relaxed);
  return done;
}

bool ShimRegion::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  return offset <= size_ && bytes.size() <= size_ - offset && memory_.read(at(offset), bytes);
}

bool ShimRegion::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  return offset <= size_ && bytes.size() <= size_ - offset && memory_.write(at(offset), bytes);
}

bool ShimRegion::store(std::uint64_t offset, std::uint64_t value) {
  return offset <= size_ && size_ - offset >= sizeof value && memory_.store64(at(offset), value);
}

void ShimRegion::load_heads(std::span<std::uint64_t> out) const {
  if (mapped_ != nullptr) [[likely]] {
    for (unsigned i = 0; i < out.size(); ++i) out[i] = load(head_at(i));
    return;
  }
  std::array<shim_head, SHIM_MAILBOXES> heads;
  const auto wanted = std::span(heads).first(out.size());
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto last = static_cast<unsigned>(out.size() - 1);
  const GuestMemory::Part part{at(head_at(last)), std::as_writable_bytes(wanted)};
  const bool read = memory_.read_each(std::span(&part, 1));
  for (unsigned i = 0; i <= last; ++i) out[i] = read ? heads[last - i].head : kGone;
}

/// A shim that timed out takes its request back, and the mailbox may be another trap's while we
/// copy.
bool ShimRegion::copy_mailbox(unsigned mailbox, std::uint64_t head, MailboxCopy& copy,
                              std::span<const GuestMemory::Part> also) const {
  std::uint64_t after = 0;
  if (mapped_ == nullptr) [[unlikely]] {
    std::array<GuestMemory::Part, 3 + kMostAlso> parts = {
        {{at(head_at(mailbox)), std::as_writable_bytes(std::span(&copy.head, 1))},
         {at(box_at(mailbox)),
          std::as_writable_bytes(std::span(&copy.box, 1)).first(SHIM_BOX_TRAP_BYTES)},
         {at(head_at(mailbox)), std::as_writable_bytes(std::span(&after, 1))}}};
    CHECK(also.size() <= kMostAlso);
    std::ranges::copy(also, parts.begin() + 3);
    if (!memory_.read_each(std::span(parts).first(3 + also.size()))) return false;
  } else {
    copy_words<SHIM_HEAD_SIZE / 8>(&copy.head.head, word(head_at(mailbox)));
    copy_words<SHIM_BOX_TRAP_BYTES / 8>(copy.box.regs, word(box_at(mailbox)));
    std::atomic_thread_fence(std::memory_order_acquire);
    after = load(head_at(mailbox));
  }
  return copy.head.head == head && after == head;
}

}  // namespace ringside::vmm
