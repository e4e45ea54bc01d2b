// The host's access to the shim's region: in place where guest RAM is mapped here, else by copies.
// The guest changes words of it at any time. While the guest runs the host writes only by
// replace(), which only replaces the value that the host wrote last. So it writes nothing into
// memory that belongs to another kernel now (kexec). In mapped memory that is one compare-and-swap.
// With copies it is a read and then a write, or only a write if the word was read just before.
// end_with() makes the last write.
// Used by Shim and its parts.
// Threads: every function from any.
// Fire context: yes; by copies each is a system call or two.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/brief_lock.h"
#include "vmm/guest_memory.h"
#include "vmm/machine.h"
#include "vmm/shim/shim_layout.h"

namespace ringside::vmm {

/// One mailbox as it was copied.
struct MailboxCopy {
  shim_head head;
  shim_box box;  // what a trap writes of it, SHIM_BOX_TRAP_BYTES
};

/// Writes zeros. False when not all of it is RAM.
[[nodiscard]] bool clear_memory(GuestMemory& memory, GuestPhys at, std::uint64_t size);

/// Clears everything that a region has ever held, with `slot_bytes` of its slots. The words by
/// which the region is recognised are cleared last.
Result<void> clear_region(PausedMachine& machine, const ShimLayout& layout,
                          std::uint64_t slot_bytes);

class ShimRegion {
 public:
  /// `size` bytes at `place`, page-aligned; `data`: the offset of struct shim_control. `memory`
  /// must outlive it.
  ShimRegion(GuestMemory& memory, GuestPhys place, std::uint64_t size, std::uint64_t data);

  GuestPhys place() const { return place_; }
  std::uint64_t size() const { return size_; }
  GuestMemory& memory() const { return memory_; }

  bool is_mapped() const { return mapped_ != nullptr; }
  /// Whether the region begins with these words. Only where is_mapped().
  template <std::size_t kWords>
  bool begins_with(const std::array<std::uint64_t, kWords>& words) const {
    std::uint64_t different = 0;
    for (std::size_t n = 0; n < kWords; ++n) different |= load(n * sizeof words[n]) ^ words[n];
    return different == 0;
  }
  /// One aligned word. All ones when the memory is gone.
  std::uint64_t load(std::uint64_t offset) const {
    if (mapped_ != nullptr) [[likely]]
      return __atomic_load_n(word(offset), __ATOMIC_SEQ_CST);
    return load_copy(offset);
  }
  /// Writes `desired` if the word at `offset` is `expected`. Otherwise false, and `expected`
  /// becomes that word.
  bool replace(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired);
  /// The same for a word that was `expected` at the last read, at time `looked`. If memory is
  /// copied, a read and a write are two system calls and never atomic. So the word is not read
  /// again if the last read is recent enough.
  bool replace_after_look(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired,
                          std::chrono::steady_clock::time_point looked);
  /// The same, as the last write: every later replace() returns false, and so do those that are
  /// under way.
  bool end_with(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired);
  /// Copies bytes; false if the memory is gone. Only for a paused guest, because a running one
  /// changes them.
  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Writes bytes that the guest does not reach yet; false when the memory is gone.
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Writes a word that makes earlier writes visible to the guest (release).
  [[nodiscard]] bool store(std::uint64_t offset, std::uint64_t value);

  /// Offsets of a word of struct shim_control (SHIM_CONTROL_*), and of a mailbox's two parts.
  std::uint64_t control_at(unsigned field) const { return data_ + field; }
  std::uint64_t head_at(unsigned mailbox) const {
    return data_ + SHIM_HEAD_AT(std::uint64_t{mailbox});
  }
  std::uint64_t box_at(unsigned mailbox) const {
    return data_ + SHIM_BOX_AT(std::uint64_t{mailbox});
  }
  /// The head words of as many mailboxes as `out` takes.
  void load_heads(std::span<std::uint64_t> out) const;
  /// Copies the mailbox of a trap. False unless its head word is `head` before and after the copy.
  /// By copies, `also` is read by the same call.
  [[nodiscard]] bool copy_mailbox(unsigned mailbox, std::uint64_t head, MailboxCopy& copy,
                                  std::span<const GuestMemory::Part> also = {}) const;
  static constexpr std::size_t kMostAlso = 5;
  /// A read that is not older than this counts as recent. A firing takes less time than this,
  /// unless our thread loses its CPU.
  static constexpr auto kJustPast = std::chrono::microseconds(50);

 private:
  std::uint64_t* word(std::uint64_t offset) const {
    // SAFETY: every caller's offset is of a word in the region, which the constructor has proved to
    // be mapped; the guest changes it at any time, hence only atomic accesses.
    return reinterpret_cast<std::uint64_t*>(mapped_ + offset);
  }
  GuestPhys at(std::uint64_t offset) const { return place_.wrapping_add(offset); }
  std::uint64_t load_copy(std::uint64_t offset) const;
  bool replace_copy(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired);

  GuestMemory& memory_;
  GuestPhys place_;
  std::uint64_t size_, data_;
  std::byte* mapped_;    // null: by copies
  BriefLock copy_lock_;  // one look and write at a time
  std::atomic<bool> ended_{false};
};

}  // namespace ringside::vmm
