#include "vmm/kvm/devices/virtqueue.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ringside::vmm::kvm {
namespace {

// Section 2.7.5: struct virtq_desc's flags and size.
enum Flag : std::uint16_t { kNext = 1, kWrite = 2, kIndirect = 4 };
constexpr std::size_t kDescriptorSize = 16;
// Sections 2.7.6 and 2.7.8: both rings begin with flags and an index.
constexpr std::size_t kFlags = 0, kIndex = 2, kRing = 4;
constexpr std::size_t kUsedElement = 8;
constexpr std::uint16_t kSuppress = 1;  // VIRTQ_AVAIL_F_NO_INTERRUPT, VIRTQ_USED_F_NO_NOTIFY

// SAFETY: create() proved that the rings lie in RAM and are aligned to 2 bytes or more; offsets
// below come from indexes taken modulo the size. vCPUs write at any time, hence atomic accesses.
std::uint16_t load16(std::span<const std::byte> ring, std::size_t at, int order) {
  return __atomic_load_n(reinterpret_cast<const std::uint16_t*>(ring.subspan(at, 2).data()), order);
}
void store16(std::span<std::byte> ring, std::size_t at, std::uint16_t value, int order) {
  __atomic_store_n(reinterpret_cast<std::uint16_t*>(ring.subspan(at, 2).data()), value, order);
}

/// The `size` bytes at `at`, when they are in RAM and aligned; empty otherwise.
std::span<std::byte> aligned_window(GuestMemory& memory, GuestPhys at, std::size_t size,
                                    std::size_t alignment) {
  const auto window = memory.mapping(at, size);
  // SAFETY: the address is only looked at.
  const auto host = reinterpret_cast<std::uintptr_t>(window.data());
  return at.raw() % alignment == 0 && host % alignment == 0 ? window : std::span<std::byte>();
}

/// Calls `visit` with each part of `pieces` in [offset, offset + size).
template <class Visit>
void visit_range(const DescriptorChain::Pieces& pieces, std::size_t offset, std::size_t size,
                 Visit visit) {
  for (const auto piece : pieces) {
    if (size == 0) return;
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const auto part = piece.subspan(offset, std::min(size, piece.size() - offset));
    visit(part);
    size -= part.size();
    offset = 0;
  }
}

}  // namespace

std::size_t copy_from(const DescriptorChain::Pieces& pieces, std::size_t offset,
                      std::span<std::byte> out) {
  std::size_t done = 0;
  visit_range(pieces, offset, out.size(), [&](std::span<std::byte> part) {
    std::memcpy(out.data() + done, part.data(), part.size());
    done += part.size();
  });
  return done;
}

std::size_t copy_to(const DescriptorChain::Pieces& pieces, std::size_t offset,
                    std::span<const std::byte> bytes) {
  std::size_t done = 0;
  visit_range(pieces, offset, bytes.size(), [&](std::span<std::byte> part) {
    std::memcpy(part.data(), bytes.data() + done, part.size());
    done += part.size();
  });
  return done;
}

DescriptorChain::Pieces slice(const DescriptorChain::Pieces& pieces, std::size_t offset,
                              std::size_t size) {
  DescriptorChain::Pieces result;
  visit_range(pieces, offset, size, [&](std::span<std::byte> part) { result.push_back(part); });
  return result;
}

struct Virtqueue::Descriptor {
  std::uint64_t address;
  std::uint32_t length;
  std::uint16_t flags, next;
};

std::optional<Virtqueue> Virtqueue::create(GuestMemory& memory, const Rings& rings,
                                           bool event_index) {
  if (!std::has_single_bit(rings.size)) return std::nullopt;
  const std::size_t size = rings.size;
  Virtqueue queue;
  queue.memory_ = &memory;
  queue.size_ = rings.size;
  queue.event_index_ = event_index;
  queue.table_ = aligned_window(memory, rings.descriptors, size * kDescriptorSize, 16);
  queue.available_ = aligned_window(memory, rings.driver, kRing + size * 2 + 2, 2);
  queue.used_ = aligned_window(memory, rings.device, kRing + size * kUsedElement + 2, 4);
  if (queue.table_.empty() || queue.available_.empty() || queue.used_.empty()) return std::nullopt;
  return queue;
}

bool Virtqueue::pop(DescriptorChain& chain) {
  if (broken()) return false;
  // Acquire: loads after this one see all that the driver wrote before it raised the index.
  const std::uint16_t index = load16(available_, kIndex, __ATOMIC_ACQUIRE);
  const auto waiting = static_cast<std::uint16_t>(index - next_available_);
  if (waiting == 0) return false;
  const std::size_t slot = next_available_ % size_;
  const std::uint16_t head = load16(available_, kRing + slot * 2, __ATOMIC_RELAXED);
  chain.head = head;
  chain.readable.clear();
  chain.writable.clear();
  chain.readable_size = chain.writable_size = 0;
  if (waiting > size_) return breaks("more chains at once than the queue has entries");
  if (!collect(head, chain)) return false;
  ++next_available_;
  return true;
}

/// The first rule is the one to tell. False, for callers that fail with it.
bool Virtqueue::breaks(std::string_view rule) {
  if (!broken()) broken_rule_ = rule;
  return false;
}

/// One copy of a descriptor; empty when the table ends before it.
std::optional<Virtqueue::Descriptor> Virtqueue::descriptor(std::uint16_t index,
                                                           std::span<const std::byte> table) const {
  if (index >= table.size() / kDescriptorSize) return std::nullopt;
  Descriptor copy;
  static_assert(sizeof copy == kDescriptorSize);
  std::memcpy(&copy, table.data() + index * kDescriptorSize, sizeof copy);
  return copy;
}

/// The table that a descriptor leads to: the whole rest of a chain (2.7.5.3.1).
std::optional<std::span<const std::byte>> Virtqueue::inner_table(const Descriptor& descriptor) {
  const std::uint32_t length = descriptor.length;
  if ((descriptor.flags & kNext) != 0) {
    breaks("a chain that goes on after an indirect table");
  } else if (length == 0 || length % kDescriptorSize != 0 || length / kDescriptorSize > size_) {
    breaks("an indirect table of a wrong size");
  } else {
    const auto inner = memory_->mapping(GuestPhys(descriptor.address), length);
    if (!inner.empty()) return inner;
    breaks("an indirect table outside the guest's memory");
  }
  return std::nullopt;
}

/// Follows the chain from `index` on; false when it breaks a rule.
bool Virtqueue::collect(std::uint16_t index, DescriptorChain& chain) {
  std::span<const std::byte> table = table_;
  // No chain has more pieces than the queue has entries: that also ends cycles. The descriptor that
  // leads to a table is none: a driver fills the table with as many as the queue has.
  bool in_table = false;
  for (std::uint32_t pieces = 0; pieces < size_;) {
    const auto current = descriptor(index, table);
    if (!current) return breaks("a descriptor's number that its table does not have");
    if ((current->flags & kIndirect) != 0) {
      if (in_table) return breaks("an indirect table within another");
      const auto inner = inner_table(*current);
      if (!inner) return false;
      table = *inner;
      in_table = true;
      index = 0;
      continue;
    }
    ++pieces;
    if (!add_piece(*current, chain)) return false;
    if ((current->flags & kNext) == 0) return true;
    index = current->next;
  }
  return breaks("a chain longer than the queue, or one that is a circle");
}

bool Virtqueue::add_piece(const Descriptor& descriptor, DescriptorChain& chain) {
  const bool writes = (descriptor.flags & kWrite) != 0;
  // Section 2.7.4.2: buffers that the device writes come after all that it reads.
  if (!writes && !chain.writable.empty()) {
    return breaks("a buffer to be read after one to be written");
  }
  if (descriptor.length == 0) return true;
  const auto piece = memory_->mapping(GuestPhys(descriptor.address), descriptor.length);
  if (piece.empty()) return breaks("a buffer outside the guest's memory");
  (writes ? chain.writable : chain.readable).push_back(piece);
  (writes ? chain.writable_size : chain.readable_size) += piece.size();
  return chain.readable_size + chain.writable_size <= UINT32_MAX ||
         breaks("a chain of more than 4 GiB");
}

void Virtqueue::push(std::uint16_t head, std::uint32_t written) {
  const std::uint32_t element[] = {head, written};
  static_assert(sizeof element == kUsedElement);
  const std::size_t at = kRing + next_used_ % size_ * kUsedElement;
  std::memcpy(used_.subspan(at, sizeof element).data(), element, sizeof element);
  ++next_used_;
  // Release: the element and the data are seen before the index.
  store16(used_, kIndex, next_used_, __ATOMIC_RELEASE);
}

bool Virtqueue::interrupt_wanted() {
  const std::uint16_t before = signalled_;
  if (before == next_used_) return false;
  signalled_ = next_used_;
  // The driver raises its flag and then looks at our index; we raised the index and look now.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!event_index_) {
    return (load16(available_, kFlags, __ATOMIC_RELAXED) & kSuppress) == 0;
  }
  const std::uint16_t event = load16(available_, kRing + size_ * std::size_t{2}, __ATOMIC_RELAXED);
  const auto distance = static_cast<std::uint16_t>(next_used_ - event - 1);
  return distance < static_cast<std::uint16_t>(next_used_ - before);
}

void Virtqueue::disable_notifications() {
  // With avail_event, the index that is there has passed already.
  if (!event_index_) store16(used_, kFlags, kSuppress, __ATOMIC_RELAXED);
}

bool Virtqueue::enable_notifications() {
  if (event_index_) {
    store16(used_, kRing + size_ * kUsedElement, next_available_, __ATOMIC_RELAXED);
  } else {
    store16(used_, kFlags, 0, __ATOMIC_RELAXED);
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return !broken() && load16(available_, kIndex, __ATOMIC_ACQUIRE) != next_available_;
}

}  // namespace ringside::vmm::kvm
