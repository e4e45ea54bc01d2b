#include "dif/evaluate/shared_locks.h"

#include <utility>

namespace ringside::dif {

void SharedAccess::lock_program() {
  if (shard_ != kNone) return lock_everything();  // unforeseen: the order asks for all of them
  locks_.program_.lock();
  has_program_ = true;
}

void SharedAccess::lock_shard(unsigned shard) {
  give_back_shard();
  if (program_first_) take_program();
  locks_.shards_[shard].lock.lock();
  shard_ = shard;
}

void SharedAccess::lock_everything() {
  give_back_shard();
  take_program();
  for (SharedLocks::Shard& shard : locks_.shards_) shard.lock.lock();
  has_all_ = true;
}

void SharedAccess::give_back_shard() {
  if (shard_ == kNone) return;
  locks_.shards_[std::exchange(shard_, kNone)].lock.unlock();
  ++gaps_;
}

void SharedAccess::release() {
  if (std::exchange(has_all_, false)) {
    for (SharedLocks::Shard& shard : locks_.shards_) shard.lock.unlock();
  }
  if (shard_ != kNone) locks_.shards_[std::exchange(shard_, kNone)].lock.unlock();
  if (std::exchange(has_program_, false)) locks_.program_.unlock();
}

}  // namespace ringside::dif
