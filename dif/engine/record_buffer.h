// One buffer of records: a vCPU's principal buffer, or its part of a speculation. Records have the
// layout that dtrace documents, so that bufsize and specsize mean the same as in dtrace: a header
// of 12 bytes (EPID, timestamp), then the data. Each record begins at the alignment of its most
// aligned field; gaps are filled with zero words, which are no EPID. A committed speculation is a
// group: a header, then each vCPU's records as they lay in its buffer.
// The policy decides what happens when a buffer is full (options.h). The caller that reserves
// counts the drop.
// Fire context: yes, but for the constructor and drain().
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "dif/engine/engine.h"
#include "dif/program/options.h"

namespace ringside::dif {

inline constexpr std::uint32_t kRecordHeaderSize = 12;

/// The room that the records of one ECB occupy.
struct RecordShape {
  std::uint32_t size = kRecordHeaderSize;  // with the header, a multiple of 4
  std::uint32_t data_size = 0;
  std::uint32_t alignment = 4;
};
/// By EcbId; [0] is no ECB's.
using RecordShapes = std::vector<RecordShape>;

/// The kind of a record. Policy Fill reserves room for END (Final). Policy Switch reserves room for
/// orders to the consumer (Order: printa(), clear()...), so that a flood of other records does not
/// drop them.
enum class Room : std::uint8_t { Ordinary, Order, Final };

class RecordBuffer {
 public:
  /// `memory` is the buffer; both must outlive this.
  RecordBuffer(std::span<std::byte> memory, BufferPolicy policy, const RecordShapes& shapes)
      : memory_(memory), policy_(policy), shapes_(&shapes) {}

  /// Bytes that only Room::Final may use (Fill), or only Room::Order (Switch).
  void set_reserve(std::size_t bytes) { reserve_ = bytes; }

  /// Room for a record's data; its data() is null when there is none. Nothing is recorded until
  /// commit(), and another reserve() forgets it. Ring gives up its oldest records for it.
  std::span<std::byte> reserve(EcbId ecb, Room room = Room::Ordinary);
  /// Records what was reserved last.
  void commit(std::uint64_t timestamp);
  /// Takes in what the buffers of a speculation hold, by vCPU, as one group; or nothing when it
  /// does not fit: false. `now` is the time of the commit. A ring gives a group up whole, too.
  bool append_group(std::span<const RecordBuffer> buffers, std::uint64_t now, Room room);
  void clear();

  bool empty() const { return used_ == 0 && lap_end_ == 0; }
  /// Fill: a record did not fit.
  bool filled() const { return filled_; }

  /// Moves the records out, the oldest first; `storage` gets the bytes that they point at. The
  /// records of a group stand in the order of their time.
  void drain(std::uint32_t vcpu, std::vector<std::byte>& storage, std::vector<Record>& records);

 private:
  struct Header {
    std::uint32_t ecb = 0;
    std::uint32_t timestamp_high = 0, timestamp_low = 0;
  };
  static_assert(sizeof(Header) == kRecordHeaderSize);
  /// The header of a group, and of the records of one vCPU in it. Both begin at a multiple of 8.
  struct GroupHeader {
    std::uint32_t mark = 0, size = 0;  // kGroup; bytes with this header
    std::uint64_t committed = 0;       // when
  };
  struct PartHeader {
    std::uint32_t vcpu = 0, size = 0;  // bytes of records
  };
  static constexpr std::uint32_t kGroup = UINT32_MAX;  // where a record has its EPID

  std::optional<std::size_t> place(std::size_t size, std::size_t alignment, Room room);
  std::optional<std::size_t> place_in_ring(std::size_t at, std::size_t size);
  void fill_gap(std::size_t end);
  std::size_t next_record(std::span<const std::byte> bytes, std::size_t at) const;
  std::size_t part_size() const;
  void split_group(std::span<const std::byte> group, std::vector<Record>& records) const;
  void split_records(std::span<const std::byte> bytes, std::uint32_t vcpu, std::uint64_t committed,
                     std::vector<Record>& records) const;

  std::span<std::byte> memory_;
  BufferPolicy policy_;
  const RecordShapes* shapes_;
  std::size_t used_ = 0;  // where the next record may begin
  // Ring, once it wrapped: [oldest_, lap_end_) is what is left of the lap before; else 0.
  std::size_t oldest_ = 0, lap_end_ = 0;
  std::size_t reserve_ = 0;
  bool filled_ = false;
  EcbId reserved_ecb_;
  std::size_t reserved_at_ = 0;
};

}  // namespace ringside::dif
