// Keeps copies of guest memory that the next firing will probably read. Where guest RAM is only
// copied, each read is a system call, and the firings of a loop read the same places.
//
// The system call that looks for a waiting vCPU also copies those places, after it has looked. So
// each copy was made while that vCPU stood still. The thread that serves the firing reads from the
// copies, and reads what is missing itself. Then the copies are dropped: no firing sees a copy
// that was made for another one. A write by this thread drops the copies that it touches.
//
// The guest chooses the addresses, so all is bounded: kMostRanges ranges of kMostOfRange bytes. A
// place that cannot be read any more is forgotten.
//
// Used by the loops that look for firings (vmm/shim/mailbox_copier.h) and by GuestMemory.
// Threads: each has its own. Fire context: yes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/guest_memory.h"

namespace ringside::vmm {

class ReadAhead {
 public:
  static constexpr std::size_t kMostRanges = 16;
  static constexpr std::size_t kMostOfRange = 1024;
  /// Longer reads are not kept: making one in vain would cost too much.
  static constexpr std::size_t kMostOfRead = 512;

  explicit ReadAhead(const GuestMemory& memory) : memory_(&memory) {}
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The places to read now: those that any of the last `firings` read. Good until the next
  /// begin_firing() or parts(); drops earlier copies.
  std::span<const GuestMemory::Part> parts(unsigned firings);
  /// The parts have been read. Until drop() the copies may serve reads.
  void arrived();
  void drop();
  /// At least one part could not be read: none of them is tried again.
  void forget();

  void begin_firing() { ++firing_; }
  /// While one exists, its thread's reads of that memory are served and noted.
  class Scope {
   public:
    explicit Scope(ReadAhead& reads);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  /// While one exists, its thread's reads ignore the ReadAhead.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    ReadAhead* paused_;
  };

  /// This thread's ReadAhead for that memory; null without a Scope, and in a Pause.
  static ReadAhead* of_thread(const GuestMemory& memory);
  /// Copies to `out` if a copy has all of the bytes; false otherwise.
  [[nodiscard]] bool serve(GuestPhys at, std::span<std::byte> out);
  /// Notes a read that no copy could serve.
  void note(GuestPhys at, std::size_t size);
  void written(GuestPhys at, std::size_t size);

 private:
  struct Range {
    GuestPhys at;
    std::size_t size = 0;
    std::uint64_t firing = 0;  // the last firing that read there
    GuestPhys copied_at;
    std::size_t copied = 0;  // bytes from copied_at on; 0: none
  };
  Range* room_for(GuestPhys at, std::size_t size);

  const GuestMemory* memory_;
  std::uint64_t firing_ = 0;
  std::size_t count_ = 0;
  std::array<Range, kMostRanges> ranges_;
  std::array<std::array<std::byte, kMostOfRange>, kMostRanges> bytes_;
  std::array<GuestMemory::Part, kMostRanges> parts_;
};

}  // namespace ringside::vmm
