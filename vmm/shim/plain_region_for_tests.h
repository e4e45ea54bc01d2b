// For tests: the shim's region in plain memory, where the test plays the guest. It is mapped, or
// reached by copies like the memory of another process. It has rings where a test asks for them.
// Used by the tests of this folder and of those above it. Not linked into the product.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/shim/shim.h"

namespace ringside::vmm {

/// Some bytes of ours as if they were another's.
class AliasedBytes final : public CopiedBytes {
 public:
  /// Called before each copy, with its offset: what another processor does in that moment.
  using Meanwhile = std::function<void(std::uint64_t offset)>;

  explicit AliasedBytes(std::span<std::byte> bytes, const Meanwhile* meanwhile = nullptr)
      : bytes_(bytes), meanwhile_(meanwhile) {}
  [[nodiscard]] bool read(std::span<const CopyPart> parts) const override {
    for (const CopyPart& part : parts) {
      if (meanwhile_ != nullptr && *meanwhile_) (*meanwhile_)(part.offset);
      if (part.offset + part.out.size() > bytes_.size()) return false;
      std::memcpy(part.out.data(), bytes_.data() + part.offset, part.out.size());
    }
    return true;
  }
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (offset + bytes.size() > bytes_.size()) return false;
    std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    return true;
  }
  std::vector<ByteExtent> extents(ByteExtent of) const override { return {of}; }

 private:
  std::span<std::byte> bytes_;
  const Meanwhile* meanwhile_;
};

/// Mixed: the region is mapped and the rest of the guest's memory is not, as with a card that was
/// plugged in for it.
enum class Reach : std::uint8_t { Mapped, Copied, Mixed };

class PlainRegion {
 public:
  static constexpr GuestPhys kGateAt{0x10000};

  /// `rings`: for so many CPUs.
  explicit PlainRegion(Reach reach = Reach::Mapped, GuestMemory::Extent place = kLowPlace,
                       std::uint32_t rings = 0)
      : layout_(*layout_shim(place, {rings})),
        words_(layout_.bytes / 8),
        memory_(reach_by(reach)) {}
  PlainRegion(const PlainRegion&) = delete;
  PlainRegion& operator=(const PlainRegion&) = delete;

  GuestMemory& memory() { return memory_; }
  const ShimLayout& layout() const { return layout_; }
  /// As it stands in the memory: zeros.
  static SavedGate gate() { return {.at = kGateAt, .bytes = {}, .ours = {}}; }

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)); }
  std::span<std::byte> gate_bytes() { return gate_; }
  shim_control& control() { return at<shim_control>(layout_.data); }
  shim_head& head(unsigned i) { return at<shim_head>(layout_.data + SHIM_HEAD_AT(i)); }
  shim_box& box(unsigned i) { return at<shim_box>(layout_.data + SHIM_BOX_AT(i)); }
  /// By the guest's table: slots by trap point, as offsets from the header; 0: it is disabled.
  std::map<GuestVirt, std::uint64_t> entries() const {
    std::map<GuestVirt, std::uint64_t> found;
    for (const LeftEntry& entry : read_table(memory_, layout_)) {
      const bool is_new = found.emplace(entry.address, entry.slot).second;
      if (!is_new) ADD_FAILURE() << entry.address.raw() << " is there twice";
    }
    return found;
  }
  /// The address's; empty where it has none.
  std::optional<std::uint64_t> entry_of(GuestVirt address) const {
    const auto all = entries();
    const auto entry = all.find(address);
    return entry == all.end() ? std::nullopt : std::optional(entry->second);
  }

  /// By copies: what the guest does before each copy of the region.
  AliasedBytes::Meanwhile& meanwhile() { return meanwhile_; }
  /// The words of a ring; numbers as in RecordRings.
  shim_ring_words& ring(std::size_t ring) {
    shim_ring& both = at<shim_ring>(layout_.ring_at(static_cast<unsigned>(ring / 2)));
    return ring % 2 == 0 ? both.first : both.nested;
  }
  /// How many records it holds.
  std::uint64_t capacity(std::size_t ring) const {
    return ring % 2 == 0 ? layout_.ring_records(record_shift)
                         : ShimLayout::nested_records(record_shift);
  }
  /// As the host has told the guest by its ring's words: a record has 1 << this bytes.
  unsigned record_shift = kDefaultRecordShift;
  /// The place of record `n`.
  std::span<std::byte> record_at(std::size_t ring, std::uint64_t n) {
    const auto cpu = static_cast<unsigned>(ring / 2);
    const std::uint64_t first =
        ring % 2 == 0 ? layout_.records_at(cpu) : layout_.nested_records_at(cpu, record_shift);
    const std::uint64_t number = n % capacity(ring);
    return bytes().subspan(first + (number << record_shift), std::size_t{1} << record_shift);
  }
  /// The ring's next record, as the shim writes it by a list that copies all; `head` is set here.
  /// `runs`: the memory that the list has copied.
  void record(std::size_t ring, shim_record record, std::span<const std::byte> runs = {}) {
    const auto at = next_record(ring, record);
    std::memcpy(at.data(), &record, sizeof record);
    std::ranges::copy(runs, at.subspan(SHIM_RECORD_RUNS).begin());
    ++this->ring(ring).head;
  }
  /// By a list that leaves the registers out.
  void record_without_registers(std::size_t ring, shim_record record,
                                std::span<const std::byte> runs = {}) {
    const auto at = next_record(ring, record);
    std::memcpy(at.data(), &record, SHIM_RECORD_CR3);
    std::ranges::copy(runs, at.subspan(SHIM_RECORD_CR3).begin());
    ++this->ring(ring).head;
  }

  /// The mailbox's next claim, with an address and nothing else new.
  void raise(unsigned i, GuestVirt address) {
    // A host that polls may look at a claim that it copies too late.
    std::atomic_ref(head(i).address).store(address.raw(), std::memory_order_relaxed);
    const std::uint64_t claim = (head(i).head / SHIM_CLAIM + 1) * SHIM_CLAIM;
    const std::uint64_t seal = seal_of(head(i), box(i), claim);
    std::atomic_ref(box(i).seal).store(seal, std::memory_order_relaxed);
    std::atomic_ref(head(i).head).store(claim + SHIM_RAISED, std::memory_order_release);
  }
  /// For the thread that raised it.
  bool is_answered(unsigned i) {
    const std::atomic_ref answered(head(i).answered);
    return answered.load(std::memory_order_acquire) == head(i).head - SHIM_RAISED;
  }

 private:
  std::span<std::byte> next_record(std::size_t ring, shim_record& record) {
    record.head = this->ring(ring).head;
    return record_at(ring, record.head);
  }

  static constexpr GuestMemory::Extent kLowPlace{GuestPhys(0x21000), 400 << 10};

  template <class T>
  T& at(std::size_t offset) {
    // SAFETY: aligned, and inside of the region, for every caller's offset.
    return *reinterpret_cast<T*>(bytes().data() + offset);
  }
  GuestMemory reach_by(Reach reach) {
    if (reach == Reach::Mapped) return GuestMemory({{layout_.place, bytes()}, {kGateAt, gate_}});
    const GuestMemory::CopiedRegion gate{kGateAt, gate_.size(),
                                         std::make_shared<AliasedBytes>(gate_), 0};
    if (reach == Reach::Mixed) return GuestMemory::of({{layout_.place, bytes()}}, {gate});
    return GuestMemory::by_copies(
        {{layout_.place, layout_.bytes, std::make_shared<AliasedBytes>(bytes(), &meanwhile_), 0},
         gate});
  }

  ShimLayout layout_;
  std::vector<std::uint64_t> words_;
  alignas(8) std::array<std::byte, 16> gate_{};
  AliasedBytes::Meanwhile meanwhile_;
  GuestMemory memory_;
};

/// A run of these words, in room for `room` of them, as a record has it.
inline std::vector<std::byte> run_of(std::uint64_t address, std::vector<std::uint64_t> words,
                                     std::size_t room) {
  const shim_run run{address, address + sizeof(std::uint64_t) * words.size()};
  words.resize(room);
  std::vector<std::byte> bytes(sizeof run + sizeof(std::uint64_t) * room);
  std::memcpy(bytes.data(), &run, sizeof run);
  std::memcpy(bytes.data() + sizeof run, words.data(), sizeof(std::uint64_t) * room);
  return bytes;
}

}  // namespace ringside::vmm
