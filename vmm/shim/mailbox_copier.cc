#include "vmm/shim/mailbox_copier.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "vmm/base/check.h"
#include "vmm/base/host_cpu.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kMostAlso = 8;
constexpr std::size_t kMostLooks = 1 + kMostAlso + ReadAhead::kMostRanges;
static_assert(kMostLooks <= 64, "GuestMemory reads so many by one call");

}  // namespace

void MailboxCopier::wait_for_next() const {
  if (in_vain_ != 0) return;
  while (Clock::now() - answered_ < pace_.wait()) cpu_relax();
}

bool MailboxCopier::look(const ShimRegion& region, unsigned mailboxes,
                         std::span<const GuestMemory::Part> also) {
  CHECK(mailboxes >= 1 && mailboxes <= SHIM_MAILBOXES && also.size() <= kMostAlso);
  looked_at_ = mailboxes;
  std::array<GuestMemory::Part, kMostLooks> parts;
  // Each part of a call takes as long as all else of a firing, so what is one range is one part.
  parts[0] = {
      region.place().wrapping_add(region.head_at(mailboxes - 1)),
      std::span(mailboxes_).first(std::size_t{mailboxes} * (SHIM_HEAD_SIZE + SHIM_BOX_SIZE))};
  std::ranges::copy(also, parts.begin() + 1);
  const std::size_t own = 1 + also.size();
  // Each vCPU may read its own places, and does so once in a round.
  const std::span<const GuestMemory::Part> ahead = reads_.parts(2 * mailboxes);
  std::ranges::copy(ahead, parts.begin() + static_cast<std::ptrdiff_t>(own));

  std::atomic_thread_fence(std::memory_order_seq_cst);  // the call sees what earlier ones wrote
  began_ = Clock::now();
  const GuestMemory& memory = region.memory();
  if (memory.read_each(std::span(parts).first(own + ahead.size()))) {
    reads_.arrived();
    return true;
  }
  reads_.forget();
  return !ahead.empty() && memory.read_each(std::span(parts).first(own));
}

void MailboxCopier::found(unsigned traps) {
  if (in_vain_ == 0) traps != 0 ? pace_.found() : pace_.found_nothing();
  in_vain_ = traps != 0 ? 0 : std::min(in_vain_ + 1, kInVain);
  if (traps != 0) answered_ = Clock::now();
}

std::uint64_t MailboxCopier::head(unsigned mailbox) const {
  CHECK(mailbox < looked_at_);
  std::uint64_t word = 0;
  std::memcpy(&word, &mailboxes_[std::size_t{looked_at_ - 1 - mailbox} * SHIM_HEAD_SIZE],
              sizeof word);
  return word;
}

MailboxCopy MailboxCopier::copy(unsigned mailbox) const {
  CHECK(mailbox < looked_at_);
  MailboxCopy out;
  const std::size_t boxes = std::size_t{looked_at_} * SHIM_HEAD_SIZE;
  std::memcpy(&out.head, &mailboxes_[std::size_t{looked_at_ - 1 - mailbox} * SHIM_HEAD_SIZE],
              sizeof out.head);
  std::memcpy(&out.box, &mailboxes_[boxes + std::size_t{mailbox} * SHIM_BOX_SIZE], sizeof out.box);
  return out;
}

}  // namespace ringside::vmm
