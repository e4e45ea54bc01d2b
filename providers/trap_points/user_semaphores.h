// The semaphores of static probes in files that processes map (USDT): counters of 2 bytes in the
// program's data. A program skips a probe while its semaphore is 0. While a probe is enabled, its
// semaphore is one higher in the page that the kernel has of the file, and in each copy that a
// process has made of this page. Processes that start later copy the raised one. So at the end
// every copy is lowered, also those that were made meanwhile.
// A semaphore looks like any other number. Therefore Find must leave out files that have changed.
//
// Used by the table of trap points of processes, which says where pages lie.
// Writes: the two bytes of each semaphore, and nothing else.
// Threads: those of the table, under its lock. Fire context: no.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
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
  /// Finds where the first bytes of ranges are in memory: by the number of the range, each place
  /// once. Ranges of a file that has changed since it was looked at have none.
  using Places = std::vector<guest_linux::UserStanding::Copy>;
  using Find = std::function<Places(std::span<const guest_linux::FileRange>, Copies)>;

  /// `offset`: in the file, even.
  void add_user(GuestVirt inode, std::uint64_t offset) { ++all_[{inode, offset}].users; }
  void release(GuestVirt inode, std::uint64_t offset) { --all_.at({inode, offset}).users; }
  /// One that an earlier tracer has raised.
  void take_over(GuestVirt inode, std::uint64_t offset);

  /// Raises those that have users and are not raised yet. `may_write`: whether the page in the
  /// file's cache may be changed now. If not, the next call tries again.
  using MayWrite = std::function<bool(GuestVirt inode, std::uint64_t offset)>;
  Result<void> raise(vmm::PausedMachine& machine, const Find& find, const MayWrite& may_write);
  /// Lowers those without users, or all. With all, the next calls lower those in copies that
  /// processes have made just then.
  enum class Which : std::uint8_t { Unused, All };
  Result<void> lower(vmm::PausedMachine& machine, const Find& find, Which which);
  /// Lowers those in these bytes of the file, in the page that the kernel has of it; returns how
  /// many. A process that copies the page from now on copies 0, so the next raise() raises such
  /// copies, too.
  Result<std::size_t> step_aside(vmm::PausedMachine& machine, const Find& find, GuestVirt inode,
                                 std::uint64_t begin, std::uint64_t end);

  /// Finds those that are 0 again because the kernel has read the file's page anew. The next
  /// raise() raises them.
  void note_missing(vmm::GuestMemory& memory, const Find& find);
  /// Whether one in these bytes is raised in the page that the kernel has of the file.
  bool stands_in(GuestVirt inode, std::uint64_t begin, std::uint64_t end) const;
  /// Whether raise() has something to do.
  bool wants_raising(const MayWrite& may_write) const;

 private:
  struct Semaphore {
    unsigned users = 0;
    bool is_raised = false;         // in processes
    bool is_in_file = false;        // in the page that the kernel has of the file
    std::set<GuestPhys> lowered{};  // where it has been lowered for good
  };
  using Key = std::pair<GuestVirt, std::uint64_t>;  // inode and offset

  static std::vector<guest_linux::FileRange> ranges_of(std::span<const Key> keys);
  enum class Step : std::uint8_t { Up, UpFromZero, Down };
  static Result<void> move(vmm::PausedMachine& machine, const Places& places, Step step);
  Result<void> lower(vmm::PausedMachine& machine, Places places, std::span<const Key> keys,
                     Which which);
  /// Of processes' own copies alone.
  static Places copies_of(const Find& find, std::span<const Key> keys);

  std::map<Key, Semaphore> all_;
};

}  // namespace ringside::providers
