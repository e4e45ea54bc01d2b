// The semaphores of static probes in files that processes map (USDT): counters of 2 bytes in the
// program's data. A program skips a probe while its semaphore is 0. While a probe is enabled its
// semaphore is one higher: in the page that the kernel has of the file, which processes get that
// start later, and in each copy that a process has made of it. So each is lowered at the end,
// whoever has copied it meanwhile. Nothing tells one from any other number, so whoever finds them
// answers for it that the file is still the same.
//
// Used by the table of trap points of processes, which says where pages lie.
// Writes: the two bytes of each semaphore, and nothing else.
// Threads: those of the table, under its lock. Fire context: no.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/stacks/user_standing.h"
#include "vmm/machine.h"

namespace ringside::providers {

class UserSemaphores {
 public:
  /// Whether processes' own copies of pages are meant, too.
  enum class Copies : std::uint8_t { Left, Too };
  /// Where these first bytes are in memory: of each range, by its number, each place once. None of
  /// a file that is another one by now.
  using Places = std::vector<guest_linux::UserStanding::Copy>;
  using Find = std::function<Places(std::span<const guest_linux::FileRange>, Copies)>;

  /// `offset`: in the file, even.
  void add_user(GuestVirt inode, std::uint64_t offset) { ++all_[{inode, offset}].users; }
  void release(GuestVirt inode, std::uint64_t offset) { --all_.at({inode, offset}).users; }
  /// One that an earlier tracer has raised.
  void take_over(GuestVirt inode, std::uint64_t offset);

  /// Those that have users and are not raised yet. `may_write`: whether the page in the file's
  /// cache may be changed now; else it is left, and tried again by the next call.
  using MayWrite = std::function<bool(GuestVirt inode, std::uint64_t offset)>;
  Result<void> raise(vmm::PausedMachine& machine, const Find& find, const MayWrite& may_write);
  /// Lowers those without users, or all.
  enum class Which : std::uint8_t { Unused, All };
  Result<void> lower(vmm::PausedMachine& machine, const Find& find, Which which);
  /// Lowers those in these bytes of the file, in the file's own pages; how many they are. A process
  /// that copies a page from now on has it lowered, so raise() raises those that are 0.
  Result<std::size_t> step_aside(vmm::PausedMachine& machine, const Find& find, GuestVirt inode,
                                 std::uint64_t begin, std::uint64_t end);

  /// The kernel may have read a file's page anew, without ours: from now on raise() has to.
  void note_missing(vmm::GuestMemory& memory, const Find& find);
  bool stands_in(GuestVirt inode, std::uint64_t begin, std::uint64_t end) const;
  /// Whether raise() has something to do.
  bool wants_raising(const MayWrite& may_write) const;
  bool any_raised() const;

 private:
  struct Semaphore {
    unsigned users = 0;
    bool is_raised = false;   // in processes
    bool is_in_file = false;  // in the page that the kernel has of the file
  };
  using Key = std::pair<GuestVirt, std::uint64_t>;  // inode and offset

  static std::vector<guest_linux::FileRange> ranges_of(std::span<const Key> keys);
  enum class Step : std::uint8_t { Up, UpFromZero, Down };
  static Result<void> move(vmm::PausedMachine& machine, const Places& places, Step step);
  /// Of processes' own copies alone.
  static Places copies_of(const Find& find, std::span<const Key> keys);

  std::map<Key, Semaphore> all_;
};

}  // namespace ringside::providers
