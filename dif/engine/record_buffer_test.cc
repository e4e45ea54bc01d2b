// The records that the buffer policies keep, to the byte.
#include "dif/engine/record_buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>

namespace ringside::dif {
namespace {

// EPID 1 has no data, 2 one of 8 bytes, 3 a string of 5.
const RecordShapes kShapes{{}, {12, 0, 4}, {24, 12, 8}, {20, 5, 4}};

class RecordBufferTest : public ::testing::Test {
 protected:
  void make(BufferPolicy policy, std::size_t size) {
    memory_.assign(size, std::byte{0xee});
    buffer_.emplace(memory_, policy, kShapes);
  }
  bool add(std::uint32_t ecb, std::uint64_t timestamp, Room room = Room::Ordinary) {
    const auto data = buffer_->reserve(EcbId{ecb}, room);
    if (data.data() == nullptr) return false;
    std::ranges::fill(data, static_cast<std::byte>(timestamp));
    buffer_->commit(timestamp);
    return true;
  }
  /// The records' timestamps, after a look at their data.
  std::vector<std::uint64_t> drain() {
    std::vector<std::byte> storage;
    std::vector<Record> records;
    buffer_->drain(0, storage, records);
    std::vector<std::uint64_t> times;
    for (const Record& record : records) {
      EXPECT_EQ(record.data.size(), kShapes[record.ecb.value].data_size);
      for (const std::byte b : record.data) EXPECT_EQ(b, static_cast<std::byte>(record.timestamp));
      times.push_back(record.timestamp);
    }
    return times;
  }

  std::vector<std::byte> memory_;
  std::optional<RecordBuffer> buffer_;
};

using Times = std::vector<std::uint64_t>;

TEST_F(RecordBufferTest, SwitchRefusesWhatDoesNotFitToTheByte) {
  make(BufferPolicy::Switch, 36);
  EXPECT_TRUE(add(1, 1));
  EXPECT_FALSE(add(2, 2)) << "12 bytes, a gap of 4, and 24 more make 40";
  EXPECT_TRUE(add(3, 3));
  EXPECT_FALSE(add(1, 4));
  EXPECT_FALSE(buffer_->filled());
  EXPECT_EQ(drain(), (Times{1, 3}));
  EXPECT_TRUE(add(2, 5)) << "empty again";
}

TEST_F(RecordBufferTest, ARecordLargerThanTheBufferNeverFits) {
  for (const auto policy : {BufferPolicy::Switch, BufferPolicy::Ring, BufferPolicy::Fill}) {
    make(policy, 11);
    EXPECT_FALSE(add(1, 1));
    EXPECT_TRUE(drain().empty());
  }
}

TEST_F(RecordBufferTest, AReservedRecordThatIsNotCommittedLeavesNothing) {
  make(BufferPolicy::Switch, 100);
  add(1, 1);
  buffer_->reserve(EcbId{2});
  add(3, 3);
  EXPECT_EQ(drain(), (Times{1, 3}));
}

TEST_F(RecordBufferTest, TimestampsAre64Bits) {
  make(BufferPolicy::Switch, 100);
  add(1, 0x0123'4567'89ab'cdef);
  EXPECT_EQ(drain(), (Times{0x0123'4567'89ab'cdef}));
}

TEST_F(RecordBufferTest, TheRingKeepsTheNewestInOrder) {
  make(BufferPolicy::Ring, 5 * 12);
  for (std::uint64_t i = 1; i <= 5; ++i) EXPECT_TRUE(add(1, i));
  EXPECT_TRUE(add(1, 6));
  EXPECT_TRUE(add(1, 7));
  EXPECT_EQ(drain(), (Times{3, 4, 5, 6, 7}));
}

TEST_F(RecordBufferTest, ALargeRecordPushesSeveralSmallOnesOutOfTheRing) {
  make(BufferPolicy::Ring, 5 * 12);
  for (std::uint64_t i = 1; i <= 5; ++i) add(1, i);
  EXPECT_TRUE(add(2, 6));  // 24 bytes
  EXPECT_EQ(drain(), (Times{3, 4, 5, 6}));
}

TEST_F(RecordBufferTest, ARecordThatReachesPastTheEndStartsTheNextLap) {
  make(BufferPolicy::Ring, 40);
  add(1, 1);
  add(2, 2);  // at 16, to the end
  EXPECT_TRUE(add(2, 3));
  EXPECT_EQ(drain(), (Times{3})) << "it lies over both";
  add(2, 4);
  add(1, 5);
  add(1, 6);
  EXPECT_EQ(drain(), (Times{5, 6}));
}

TEST_F(RecordBufferTest, TheRingHoldsASuffixOfWhatWasRecorded) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    make(BufferPolicy::Ring, 24 + random() % 200);
    Times added;
    const std::size_t count = random() % 100;
    for (std::uint64_t i = 1; i <= count; ++i) {
      const std::uint32_t ecb = 1 + random() % 3;
      ASSERT_TRUE(add(ecb, i));
      if (random() % 4 == 0) buffer_->reserve(EcbId{2});  // a clause that faulted
      added.push_back(i);
    }
    const Times kept = drain();
    ASSERT_LE(kept.size(), added.size());
    EXPECT_TRUE(std::ranges::equal(kept, std::span(added).last(kept.size())));
  }
}

TEST_F(RecordBufferTest, FillEndsWithTheFirstThatDoesNotFit) {
  make(BufferPolicy::Fill, 30);
  EXPECT_TRUE(add(1, 1));
  EXPECT_FALSE(add(3, 2));
  EXPECT_TRUE(buffer_->filled());
  EXPECT_FALSE(add(1, 3)) << "although there is room for it";
  EXPECT_TRUE(add(1, 4, Room::Final));
  EXPECT_EQ(drain(), (Times{1, 4}));
}

TEST_F(RecordBufferTest, FillKeepsItsReserveForTheEnd) {
  make(BufferPolicy::Fill, 36);
  buffer_->set_reserve(12);
  EXPECT_TRUE(add(1, 1));
  EXPECT_TRUE(add(1, 2));
  EXPECT_FALSE(buffer_->filled());
  EXPECT_FALSE(add(1, 3));
  EXPECT_TRUE(buffer_->filled());
  EXPECT_TRUE(add(1, 4, Room::Final));
  EXPECT_EQ(drain(), (Times{1, 2, 4}));
}

/// Buffers of a speculation with two vCPUs: 7 and 9 are the first one's, 8 the second one's.
class GroupTest : public RecordBufferTest {
 protected:
  GroupTest() {
    for (unsigned vcpu = 0; vcpu < 2; ++vcpu) {
      buffers_.emplace_back(speculated_[vcpu], BufferPolicy::Switch, kShapes);
    }
    speculate(0, 1, 7);
    speculate(0, 2, 9);
    speculate(1, 1, 8);
  }
  void speculate(unsigned vcpu, std::uint32_t ecb, std::uint64_t timestamp) {
    std::ranges::fill(buffers_[vcpu].reserve(EcbId{ecb}), static_cast<std::byte>(timestamp));
    buffers_[vcpu].commit(timestamp);
  }
  /// A header of 16 bytes, and for each vCPU 8 bytes and its records: 12, a gap of 4, 24; and 12,
  /// to a multiple of 8.
  static constexpr std::size_t kSize = 16 + 8 + 40 + 8 + 16;

  std::array<std::array<std::byte, 64>, 2> speculated_{};
  std::vector<RecordBuffer> buffers_;
};

TEST_F(GroupTest, ComesInTheOrderOfTimeWithItsVcpus) {
  make(BufferPolicy::Switch, 200);
  add(1, 1);
  ASSERT_TRUE(buffer_->append_group(buffers_, 20, Room::Ordinary));
  add(2, 30);
  std::vector<std::byte> storage;
  std::vector<Record> records;

  buffer_->drain(5, storage, records);

  ASSERT_EQ(records.size(), 5u);
  const std::array<std::array<std::uint64_t, 3>, 5> wanted{
      {{1, 5, 1}, {7, 0, 20}, {8, 1, 20}, {9, 0, 20}, {30, 5, 30}}};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Record& record = records[i];
    EXPECT_EQ((std::array<std::uint64_t, 3>{record.timestamp, record.vcpu, record.order()}),
              wanted[i]);
    for (const std::byte b : record.data) EXPECT_EQ(b, static_cast<std::byte>(record.timestamp));
  }
}

TEST_F(GroupTest, FitsToTheByteOrNotAtAll) {
  make(BufferPolicy::Switch, 16 + kSize - 1);
  add(1, 1);
  EXPECT_FALSE(buffer_->append_group(buffers_, 20, Room::Ordinary));
  EXPECT_EQ(drain(), Times{1});
  make(BufferPolicy::Switch, 16 + kSize);
  add(1, 1);
  EXPECT_TRUE(buffer_->append_group(buffers_, 20, Room::Ordinary)) << "at 16";
  EXPECT_FALSE(add(1, 2));
  EXPECT_EQ(drain(), (Times{1, 7, 8, 9}));
}

TEST_F(GroupTest, IsNothingWhereNobodyRecorded) {
  make(BufferPolicy::Switch, 12);
  for (RecordBuffer& buffer : buffers_) buffer.clear();

  EXPECT_TRUE(buffer_->append_group(buffers_, 20, Room::Ordinary));

  EXPECT_TRUE(buffer_->empty());
}

TEST_F(GroupTest, GoesInAndOutOfARingInOnePiece) {
  make(BufferPolicy::Ring, kSize + 12);
  for (std::uint64_t i = 1; i <= 4; ++i) add(1, i);
  EXPECT_TRUE(buffer_->append_group(buffers_, 20, Room::Ordinary));
  EXPECT_TRUE(add(1, 21));
  EXPECT_TRUE(add(1, 22)) << "over the group's header";
  EXPECT_EQ(drain(), (Times{21, 22}));
}

}  // namespace
}  // namespace ringside::dif
