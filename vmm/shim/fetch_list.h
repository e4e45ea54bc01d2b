// Fetch lists: what a trap point copies into its records, and checks that tell which traps need no
// record. A list says which parts of a record are wanted, and has loads of the guest's memory,
// which the shim in the guest follows (guest-shim/mailbox_abi.h); RecordedRuns has the copies, as
// the host finds them in a record. All of a record is the guest's: a run that cannot be one is
// taken for empty. Used by the shim, which writes lists into the guest, and by what replays
// records. Pure. Fire context: RecordedRuns yes, all else no.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/page_walk.h"

namespace ringside::vmm {

/// One load. Its address is a word of the record plus `offset` bytes, and a part of another word if
/// there is an index, rounded down to a word.
struct FetchLoad {
  /// Of a word, the bits that are left once it is shifted to the left and then to the right.
  struct Index {
    std::uint16_t source = 0;
    std::uint8_t left = 0, right = 0;

    bool operator==(const Index&) const = default;
  };
  /// Which word of the record, as shim_load::source; 0: none, so the offset alone is the address.
  std::uint16_t source = 0;
  std::uint16_t words = 0;  // how many it copies, 1 to kMostWords
  bool is_users = false;    // an address of the process's, else the kernel's
  std::int32_t offset = 0;
  std::optional<Index> index = std::nullopt;

  static constexpr std::uint16_t kMostWords = 512;
  /// The sources that each record has.
  static constexpr std::uint16_t kPerCpuBase = SHIM_RECORD_PERCPU / sizeof(std::uint64_t);
  static constexpr std::uint16_t kTask = SHIM_RECORD_TASK / sizeof(std::uint64_t);
  /// Only with Copies::registers. `number`: as enum shim_register has them.
  static constexpr std::uint16_t register_source(unsigned number) {
    return static_cast<std::uint16_t>(SHIM_RECORD_REGS / sizeof(std::uint64_t) + number);
  }

  bool operator==(const FetchLoad&) const = default;
};

/// A comparison of a word of the record with a constant. Where it does not hold, the trap is not
/// recorded, or waits. `source` is the word; it is shifted to the left by `left` bits, then to the
/// right, and the bits of `mask` are compared.
struct FetchCheck {
  enum class Relation : std::uint8_t { Equal, Less, LessUnsigned };
  std::uint16_t source = 0;
  std::uint8_t left = 0, right = 0;
  bool is_signed = false;  // the shift to the right keeps the sign
  Relation relation = Relation::Equal;
  bool is_negated = false;
  std::uint64_t mask = UINT64_MAX;
  std::uint64_t with = 0;
  /// Where it does not hold, the trap waits; a word that could not be read is 0. Else the trap is
  /// left out, or recorded if this word or one before it could not be read.
  bool lets_wait = false;

  static constexpr std::uint16_t kTids = SHIM_RECORD_PID / sizeof(std::uint64_t);
  static constexpr std::uint16_t kName = SHIM_RECORD_COMM / sizeof(std::uint64_t);

  bool operator==(const FetchCheck&) const = default;
};

/// A comparison of 8 bytes of the current task: they have to be equal to `with`, or to differ from
/// it, as far as `mask` goes. Costs the least, since it is judged before there is a record.
struct TaskCheck {
  std::uint16_t offset = 0;  // in struct task_struct
  bool is_negated = false;
  std::uint64_t mask = UINT64_MAX;
  std::uint64_t with = 0;

  bool operator==(const TaskCheck&) const = default;
};

class FetchList {
 public:
  /// The parts of a record that may be left out.
  struct Copies {
    bool registers = true;  // and cr3, flags and segments
    bool ids = true;        // the task's pid, tid and start time

    bool operator==(const Copies&) const = default;
  };

  /// The list of a trap point that copies all of these and no memory is the default one.
  FetchList() = default;
  explicit FetchList(Copies copies) : copies_(copies) {}
  bool is_default() const { return *this == FetchList(); }
  /// Whether each trap has a record in which nothing is missing that the default one's has.
  bool has_all_of_default() const {
    return copies_ == Copies() && checks_.empty() && task_checks_.empty();
  }
  const Copies& copies() const { return copies_; }
  /// More loads than this would hold up a guest CPU for long.
  static constexpr std::size_t kMostLoads = 32, kMostChecks = 16;
  static constexpr std::size_t kMostRecordBytes = 4096;

  /// Adds a load, or finds it where it is in the list already; returns its number. Empty when there
  /// is no room for it.
  std::optional<std::size_t> add(const FetchLoad& load);
  std::span<const FetchLoad> loads() const { return loads_; }
  bool copies_memory() const { return !loads_.empty() || has_stack_; }
  /// With registers, and where an address is counted from it.
  bool copies_percpu() const {
    return copies_.registers ||
           std::ranges::find(loads_, FetchLoad::kPerCpuBase, &FetchLoad::source) != loads_.end();
  }
  /// Judged once the loads so far are done. False where there is no room for it.
  bool add_check(const FetchCheck& check);
  bool add_check(const TaskCheck& check);
  /// Traps at which the word is one of these wait, and all others go on at once, without a record:
  /// for a watch. Fewer than kMostChecks; where there is room, add_waited_for() may add some later.
  void wait_only_for(std::uint16_t source, std::span<const GuestVirt> values);
  /// One more, in a check that waits for nothing so far. False where there is none. The encoded
  /// list differs in that one word.
  bool add_waited_for(GuestVirt value);
  bool waits_only_for_some() const { return waits_only_for_some_; }
  /// Takes the checks out that leave traps out. Returns whether there were any.
  bool drop_checks();
  struct PlacedCheck {
    FetchCheck check;
    std::size_t loads = 0;  // before it
    bool operator==(const PlacedCheck&) const = default;
  };
  std::span<const PlacedCheck> checks() const { return checks_; }
  std::span<const TaskCheck> task_checks() const { return task_checks_; }
  /// The word that a load has copied first, as the source of later ones.
  std::uint16_t source_of(std::size_t load) const;
  /// Copies the task's kernel stack, too, from the stack pointer on: whole, or the trap waits.
  void add_stack() { has_stack_ = true; }
  bool has_stack() const { return has_stack_; }
  /// How many words of stack there is room for in a record of so many bytes.
  void fit(std::size_t record_bytes);
  std::size_t stack_words() const { return stack_words_; }
  /// Where a record's runs begin.
  std::size_t runs_at() const { return copies_.registers ? SHIM_RECORD_RUNS : SHIM_RECORD_CR3; }
  /// Of a record with all that the list copies. The stack's room is what fit() gives it.
  std::size_t record_bytes() const;
  /// The fewest bytes that its record may have. A stack has room for kLeastStack at least.
  std::size_t least_record_bytes() const;
  static constexpr std::size_t kLeastStack = 512;  // bytes; fewer hold hardly any
  /// The struct shim_list that it begins with.
  shim_list head() const;
  /// As the guest has it, up to its last entry.
  std::vector<std::byte> encode() const;

  bool operator==(const FetchList& other) const = default;

 private:
  static constexpr std::size_t kSpareChecks = 4;
  static constexpr std::uint64_t kNothing = 1;  // no address of anything

  std::size_t bytes_before(std::size_t load) const;

  Copies copies_;
  std::vector<TaskCheck> task_checks_;
  std::vector<FetchLoad> loads_;
  std::vector<PlacedCheck> checks_;  // in their order
  bool waits_only_for_some_ = false;
  bool has_stack_ = false;
  std::size_t stack_words_ = 0;
};

/// All that the shim has to know of the guest to look addresses up.
struct FetchFacts {
  PageTable kernel_table;                // init_top_pgt
  GuestVirt direct_map;                  // where the kernel maps all RAM
  std::vector<GuestMemory::Extent> ram;  // whole pages, by address
  std::uint32_t task_stack = 0;          // offset in struct task_struct of its stack's address
  std::uint64_t stack_bytes = 0;         // of a task's stack

  /// Unsupported, with the reason, where the shim cannot.
  Result<shim_fetch> encode() const;
};

/// The memory that a record holds, as a reader of the guest's: what was not copied cannot be read.
class RecordedRuns {
 public:
  /// `list` made the record whose bytes from its runs_at() on are `bytes`.
  void begin(const FetchList& list, std::span<const std::byte> bytes);
  void clear() { count_ = 0; }
  /// The bytes from `at` on, at least one; empty where there are none.
  std::span<const std::byte> from(GuestVirt at) const;

 private:
  struct Run {
    std::uint64_t address = 0;
    std::span<const std::byte> bytes;
  };
  void add(std::span<const std::byte>& bytes, std::size_t words);

  std::array<Run, FetchList::kMostLoads + 1> runs_;
  std::size_t count_ = 0;
};

}  // namespace ringside::vmm
