// The locks on the part of D's state that the firings of all vCPUs share. They make a firing atomic
// for other firings.
//
// All else is a vCPU's own (dif/engine/engine.h). Shared are
//   global variables, associative arrays, speculations   the program lock
//   self-> variables                                     one of kShards locks, by the thread
// A firing takes a lock when it first uses something that the lock protects, and keeps it to its
// end. So firings look to each other as if they ran one after the other: `x++` counts exactly, and
// the condition of an `if` still holds in its body. A firing that touches nothing shared waits for
// nobody. A thread runs on one vCPU at a time. So its shard is free unless another thread has the
// same shard, or the guest lies about its threads.
//
// Order: the program lock, then a shard. If a probe's clauses need the program lock
// (`program_first`, known when they are enabled), its firings take that lock before a shard. A
// firing may also reach shared memory unexpectedly, by an address that D code kept or the guest
// forged. Then it releases its shard and takes every lock in order. Elements that it held writable
// are not writable any more, because another vCPU may have erased them meanwhile. With one vCPU no
// lock is taken. Engines of several machines that run one program share these locks
// (variables.h). Fire context: yes.
#pragma once

#include <array>
#include <cstdint>

#include "vmm/base/brief_lock.h"

namespace ringside::dif {

class SharedLocks {
 public:
  static constexpr unsigned kShards = 16;

  explicit SharedLocks(unsigned vcpus) : needed_(vcpus > 1) {}

  /// For the consumer, between firings of its own kind. With std::lock_guard.
  BriefLock& program() { return program_; }

 private:
  friend class SharedAccess;
  struct alignas(64) Shard {
    BriefLock lock;
  };

  const bool needed_;
  alignas(64) BriefLock program_;
  std::array<Shard, kShards> shards_;
};

/// The locks that one vCPU's firing holds.
class SharedAccess {
 public:
  explicit SharedAccess(SharedLocks& locks) : locks_(locks), needed_(locks.needed_) {}
  SharedAccess(const SharedAccess&) = delete;
  SharedAccess& operator=(const SharedAccess&) = delete;

  /// A new firing, at a probe whose clauses are known to come to the program's state, or not.
  void begin(bool program_first) { program_first_ = program_first; }
  /// Gives all locks back.
  void end() {
    if (has_program_ || shard_ != kNone) release();
  }

  /// From here to end() the program's state, or that of the threads of a shard, is this firing's.
  void take_program() {
    if (needed_ && !has_program_) lock_program();
  }
  void take_shard(unsigned shard) {
    if (needed_ && shard_ != shard && !has_all_) lock_shard(shard);
  }
  void take_everything() {
    if (needed_ && !has_all_) lock_everything();
  }
  bool owns_program() const { return has_program_ || !needed_; }

  /// Changes when a shard was given back before the firing's end.
  std::uint32_t gaps() const { return gaps_; }

 private:
  static constexpr unsigned kNone = SharedLocks::kShards;

  void lock_program();
  void lock_shard(unsigned shard);
  void lock_everything();
  void give_back_shard();
  void release();

  SharedLocks& locks_;
  const bool needed_;
  bool program_first_ = false;
  bool has_program_ = false, has_all_ = false;
  unsigned shard_ = kNone;  // held; with has_all_ all are
  std::uint32_t gaps_ = 0;
};

}  // namespace ringside::dif
