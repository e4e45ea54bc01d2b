// Every address that DIF may use: D's own state by handle, everything else in the guest.
//
// A handle is an address that no guest page table can map: its top byte is not canonical under
// 48- or 57-bit paging. Below it lie the arena's number and an offset, both checked on every
// access. So no host pointer is ever in a register, and arithmetic on a handle can at worst reach
// other D data. A guest that forges one can at worst make a clause read D data.
//
//   63      56 55     48 47                 0
//   | kHandle | arena   | offset             |
//
// Strings and by-reference values of D are used in place. Those of the guest are copied first. Fire
// context: yes, but for the constructor and set_arena().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dif/evaluate/lazy_memory.h"
#include "dif/evaluate/line_cache.h"
#include "dif/evaluate/shared_locks.h"
#include "dif/program/options.h"
#include "vmm/base/result.h"

namespace ringside::dif {

inline tl::unexpected<Fault> raise(FaultKind kind, std::uint64_t address = 0) {
  return tl::unexpected<Fault>(Fault{kind, 0, address});
}

enum class Arena : std::uint8_t {
  Constants,  // strings of the program
  Scratch,    // alloca, copyin, results of string subroutines; of one clause
  Globals,    // by-reference global variables
  Locals,     // by-reference this-> variables
  Dynamic,    // by-reference self-> variables and elements of associative arrays
  Names,      // probeprov, probemod, probefunc, probename, vmname
  Context,    // execname
};
inline constexpr std::size_t kArenas = 7;

inline constexpr std::uint64_t kHandle = 0x4d;

constexpr std::uint64_t make_handle(Arena arena, std::uint64_t offset) {
  return kHandle << 56 | static_cast<std::uint64_t>(arena) << 48 | offset;
}
constexpr bool is_handle(std::uint64_t address) {
  return address >> 56 == kHandle;
}

class Memory {
 public:
  explicit Memory(const EngineOptions& options);

  void set_arena(Arena arena, std::span<std::byte> bytes) {
    arenas_[index(arena)] = bytes;
    readable_[index(arena)] = bytes;
  }
  /// Strings of the program; they must outlive this.
  void set_constants(std::string_view strings) {
    readable_[index(Arena::Constants)] = std::as_bytes(std::span(strings));
  }

  /// The locks that firings take for state that vCPUs share. Without them nothing is shared.
  void set_access(SharedAccess& access) { access_ = &access; }

  void begin_firing(const GuestReader& kernel, const GuestReader& user) {
    kernel_.begin(kernel);
    user_.begin(user);
    scratch_used_ = 0;
    open_count_ = 0;
  }
  void begin_clause() { scratch_used_ = 0; }
  /// For loops: how much scratch is in use, and back to that.
  std::size_t scratch_used() const { return scratch_used_; }
  void free_scratch(std::size_t used) { scratch_used_ = std::min(used, scratch_used_); }

  /// D state or guest kernel memory.
  Result<void, Fault> read(std::uint64_t at, std::span<std::byte> out) {
    if (is_handle(at)) return read_state(at, out);
    return kernel_.read(at, out);
  }
  Result<void, Fault> read_state(std::uint64_t at, std::span<std::byte> out);
  Result<void, Fault> read_user(std::uint64_t at, std::span<std::byte> out) {
    return user_.read(at, out);
  }

  /// From now on what the address leads to, of D's own memory, is this firing's.
  void take(std::uint64_t at) { (void)state(at, 1); }

  /// The string at `at` without its NUL, at most `limit` bytes and strsize. Valid until the next
  /// string() and, for D's own strings, until they are written.
  Result<std::string_view, Fault> string(std::uint64_t at, std::size_t limit) {
    release_staging();
    return another_string(at, limit);
  }
  /// For subroutines that look at several at once: all answers since release_staging() stay valid.
  /// More than kStagedStrings may find no room, which is a fault.
  Result<std::string_view, Fault> another_string(std::uint64_t at, std::size_t limit);
  static constexpr std::size_t kStagedStrings = 4;  // no subroutine looks at more at once
  /// Forgets staged copies; called before each subroutine.
  void release_staging() { staged_ = 0; }
  /// Copies a user string into fresh scratch, at most limit bytes of it, and puts a NUL after it.
  Result<std::uint64_t, Fault> copy_user_string(std::uint64_t at, std::size_t limit);

  /// D memory that instructions may write: scratch, global and this-> storage, opened elements.
  Result<std::span<std::byte>, Fault> writable(std::uint64_t at, std::uint64_t size);
  /// Lets instructions write to one element of the Dynamic arena; the arena's other bytes are the
  /// table itself. It lasts until many more elements are opened, and at most to the end of the
  /// firing.
  void open(std::uint64_t handle, std::uint64_t size) {
    opened_[open_count_++ % opened_.size()] = {handle, size, gaps()};
  }
  /// The same, of scratch only: where bcopy() and copyinto() may copy to.
  Result<std::span<std::byte>, Fault> scratch(std::uint64_t at, std::uint64_t size);
  /// 8-aligned scratch with unspecified D data in it; no room is a fault.
  Result<std::uint64_t, Fault> allocate(std::uint64_t size);
  /// A fresh copy of `text` with a NUL in scratch.
  Result<std::uint64_t, Fault> new_string(std::string_view text);

  /// Frees what allocate() answered with, and all that was allocated after it.
  void give_back(std::uint64_t handle);

  std::size_t string_size() const { return string_size_; }
  /// For compiled code, which looks into them first (native_code.h).
  const LineCache& kernel_lines() const { return kernel_; }
  const LineCache& user_lines() const { return user_; }

 private:
  static constexpr std::size_t index(Arena arena) { return static_cast<std::size_t>(arena); }
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << 48) - 1;
  /// The D bytes from the handle to the end of its arena, or of the element if that has `least` of
  /// them; none if the handle leads nowhere. Memory that vCPUs share is looked at with its lock
  /// held.
  std::span<const std::byte> state(std::uint64_t at, std::size_t least) {
    const auto arena = static_cast<Arena>(at >> 48 & 0xff);
    const std::uint64_t offset = at & kOffsetMask;
    if (!is_handle(at) || index(arena) >= kArenas) return {};
    const auto bytes = readable_[index(arena)];
    if (offset >= bytes.size()) return {};
    const bool shared = arena == Arena::Globals || arena == Arena::Dynamic;
    if (shared && access_ != nullptr) return shared_state(arena, at, least);
    return bytes.subspan(offset);
  }
  std::span<const std::byte> shared_state(Arena arena, std::uint64_t at, std::size_t least);
  std::uint32_t gaps() const { return access_ == nullptr ? 0 : access_->gaps(); }
  std::uint64_t open_bytes(std::uint64_t at) const;

  std::array<std::span<std::byte>, kArenas> arenas_;  // but for the constants
  std::array<std::span<const std::byte>, kArenas> readable_;
  LineCache kernel_, user_;
  SharedAccess* access_ = nullptr;
  LazyMemory scratch_memory_;
  std::span<std::byte> scratch_;
  std::size_t scratch_used_ = 0;
  struct Opened {
    std::uint64_t handle = 0, size = 0;
    std::uint32_t gaps = 0;  // of the locks, when it was opened
  };
  std::array<Opened, 16> opened_;  // more than a clause's statement can have in its registers
  std::size_t open_count_ = 0;     // in this firing
  LazyMemory staging_memory_;
  std::span<char> staging_;
  std::size_t staged_ = 0;
  std::size_t string_size_;
};

}  // namespace ringside::dif
