// One half of one vCPU's principal buffer: records one after the other, each with a header, in
// bufsize bytes. A record that does not fit is the caller's to count as dropped.
// Fire context: reserve() and commit() yes, everything else no.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "dif/engine.h"
#include "dif/lazy_memory.h"

namespace ringside::dif {

class RecordBuffer {
 public:
  explicit RecordBuffer(std::size_t size) : memory_(size) {}

  /// Room for a record's data, 8-aligned; data() is null when it does not fit. Nothing is recorded
  /// until commit(), and another reserve() forgets it.
  std::span<std::byte> reserve(std::size_t data_size);
  /// Records what was reserved last.
  void commit(EcbId ecb, std::uint64_t timestamp);

  /// Moves the records out in the order of commits; `storage` gets the bytes that they point at.
  void drain(std::uint32_t vcpu, std::vector<std::byte>& storage, std::vector<Record>& records);

 private:
  struct Header {
    std::uint32_t ecb = 0;
    std::uint32_t size = 0;  // of the data
    std::uint64_t timestamp = 0;
  };

  LazyMemory memory_;
  std::size_t used_ = 0;
  std::size_t reserved_ = 0;  // data bytes of the record that is being made
};

}  // namespace ringside::dif
