// The test is the guest: it writes records as the shim does, or words and records that it never
// would.
#include "vmm/shim/record_rings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "vmm/shim/shim_channel_for_tests.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

constexpr std::uint32_t kRingCpus = 2;
constexpr GuestVirt kRingsHome{0xffffffff9f000000}, kSecondText{kText.raw() + 0x40},
    kThirdText{kText.raw() + 0x80};
constexpr std::uint64_t kForged = ~std::uint64_t{0} - 2;  // a count that soon begins again at 0

/// The host's end, over memory with rings for `cpus`. kText and kSecondText are trap points.
struct RingHost {
  RingHost(PlainRegion& plain, std::uint32_t cpus)
      : region(plain.memory(), plain.layout().place, plain.layout().bytes, plain.layout().data),
        presence(region, plain.layout(), kRingsHome, PlainRegion::gate()),
        slots(region, presence, plain.layout(), kRingsHome, {}),
        table(region, presence, slots, plain.layout()),
        rings(region, presence, table, plain.layout(), kRingsHome) {
    EXPECT_EQ(plain.layout().ring_count, cpus);
    for (const GuestVirt at : {kText, kSecondText}) {
      EXPECT_TRUE(table.insert(at, plain.layout().slots));
      EXPECT_TRUE(table.set_recording(std::array{at}, 0));
    }
  }

  ShimRegion region;
  ShimPresence presence;
  ShimSlots slots;
  ShimTable table;
  RecordRings rings;
};

shim_record record_of(std::uint64_t tsc, GuestVirt address = kText) {
  shim_record record{};
  record.address = address.raw();
  record.tsc = tsc;
  return record;
}

class Rings : public testing::TestWithParam<Reach> {
 protected:
  static constexpr GuestMemory::Extent kSmall{GuestPhys(0x21000), 160 << 10};

  /// So many records, whose TSCs go on from `tsc`.
  void record(std::size_t ring, std::uint64_t count, std::uint64_t tsc) {
    for (std::uint64_t n = 0; n < count; ++n) plain_.record(ring, record_of(tsc + n));
  }
  /// The TSCs of all that is there now, taken in pieces of `at_once`.
  std::vector<std::uint64_t> take_all(std::size_t ring, std::size_t at_once = 1000) {
    std::vector<std::uint64_t> tscs;
    std::vector<Trap> out(at_once);
    while (rings_.waiting(ring) != 0) {
      const std::size_t taken = rings_.take(ring, out);
      for (std::size_t n = 0; n < taken; ++n) tscs.push_back(out[n].tsc);
    }
    return tscs;
  }
  void expect_told();
  static std::vector<std::uint64_t> from(std::uint64_t tsc, std::uint64_t count) {
    std::vector<std::uint64_t> tscs(count);
    for (std::uint64_t n = 0; n < count; ++n) tscs[n] = tsc + n;
    return tscs;
  }

  PlainRegion plain_{GetParam(), kSmall, kRingCpus};
  RingHost host_{plain_, kRingCpus};
  RecordRings& rings_ = host_.rings;
  const std::uint64_t capacity_ = rings_.capacity();
};

INSTANTIATE_TEST_SUITE_P(Every, Rings, kEveryReach, reach_name);

TEST_P(Rings, AreToldToTheGuestAsTheyLie) {
  ASSERT_EQ(rings_.size(), 2u * kRingCpus);
  EXPECT_EQ(capacity_, plain_.layout().ring_records());
  expect_told();
}

void Rings::expect_told() {
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    const shim_ring_words& words = plain_.ring(ring);
    EXPECT_EQ(words.most, plain_.capacity(ring) - 1) << ring;
    const std::byte* const first = plain_.bytes().data() + (words.data - kRingsHome.raw());
    EXPECT_EQ(first, plain_.record_at(ring, 0).data()) << ring;
    EXPECT_EQ(words.head | words.tail | words.busy | words.dropped | words.late, 0u) << ring;
  }
}

shim_record full_record() {
  shim_record record = record_of(1234, kSecondText);
  record.percpu = 0xffff888000001000;
  record.rflags = 0x246;
  record.cr3 = 0x1234000;
  record.cs = 0x10;
  record.ss = 0x18;
  for (unsigned n = 0; n < SHIM_REGISTERS; ++n) record.regs[n] = 1000 + n;
  record.task = 0xffff888000002000;
  std::memcpy(record.comm, "sixteen letters", 16);
  record.pid = 101;
  record.tgid = 100;
  record.start_time = 77'000'000'001;
  return record;
}

TEST_P(Rings, GiveWhatTheGuestHasWrittenWithAllItsFields) {
  const shim_record record = full_record();
  plain_.record(2, record);
  plain_.record(2, record_of(1240));

  ASSERT_TRUE(rings_.look());
  ASSERT_EQ(rings_.waiting(2), 2u);
  std::array<Trap, 4> out;
  ASSERT_EQ(rings_.take(2, out), 2u);

  const Trap& trap = out[0];
  EXPECT_EQ(trap.address, kSecondText);
  EXPECT_EQ(trap.tsc, 1234u);
  EXPECT_EQ(trap.percpu_base.raw(), 0xffff888000001000u);
  for (unsigned n = 0; n < SHIM_REGISTERS; ++n) {
    EXPECT_EQ(trap.registers.*arch::kByEncoding[n], 1000 + n) << n;
  }
  EXPECT_EQ(trap.registers.rip, kSecondText.raw());
  EXPECT_EQ(trap.registers.rflags, 0x246u);
  EXPECT_EQ(trap.registers.cr3, 0x1234000u);
  EXPECT_EQ(trap.registers.cs, 0x10u);
  EXPECT_EQ(trap.registers.ss, 0x18u);
  EXPECT_EQ(trap.registers.gs_base, 0xffff888000001000u);
  ASSERT_TRUE(trap.task);
  EXPECT_EQ(trap.task->address.raw(), 0xffff888000002000u);
  EXPECT_STREQ(trap.task->comm.data(), "sixteen letters");
  ASSERT_TRUE(trap.task->ids);
  EXPECT_EQ(trap.task->ids->pid, 101);
  EXPECT_EQ(trap.task->ids->tgid, 100);
  EXPECT_EQ(trap.task->ids->start_time, 77'000'000'001u);
  EXPECT_EQ(out[1].address, kText);
  EXPECT_EQ(out[1].tsc, 1240u);
  EXPECT_FALSE(out[1].task) << "the shim did not know it";
  EXPECT_EQ(rings_.waiting(2), 0u);
  EXPECT_EQ(plain_.ring(2).tail, 2u) << "room for more";
}

TEST_P(Rings, AreAskedForMoreByEachLook) {
  record(0, 2, 10);
  ASSERT_TRUE(rings_.look());
  record(0, 2, 12);
  EXPECT_EQ(take_all(0), from(10, 2)) << "of that look";
  EXPECT_EQ(plain_.ring(0).tail, 2u);

  ASSERT_TRUE(rings_.look());

  EXPECT_EQ(take_all(0), from(12, 2));
  EXPECT_EQ(plain_.ring(0).tail, 4u);
  ASSERT_TRUE(rings_.look());
  EXPECT_EQ(rings_.waiting(0), 0u);
}

TEST_P(Rings, GoOnAtTheirBeginning) {
  std::uint64_t tsc = 0;
  for (const std::size_t ring : {0u, 1u}) {
    const std::uint64_t holds = plain_.capacity(ring);
    for (const std::uint64_t count : {holds - 1, std::uint64_t{2}, holds, holds - 2, holds}) {
      record(ring, count, tsc);
      ASSERT_TRUE(rings_.look());
      EXPECT_EQ(rings_.waiting(ring), count);
      EXPECT_EQ(take_all(ring), from(tsc, count));
      tsc += count;
    }
    EXPECT_EQ(plain_.ring(ring).tail, 4 * holds - 1);
  }
  EXPECT_EQ(rings_.counters().rejected, 0u);
}

TEST_P(Rings, GoOnWhereTheirCountsBeginAgain) {
  plain_.ring(0).head = kForged;
  ASSERT_TRUE(rings_.look());
  ASSERT_EQ(rings_.waiting(0), 0u) << "it claims more than fits";
  ASSERT_EQ(rings_.counters().rejected, 1u);

  record(0, 8, 100);
  ASSERT_TRUE(rings_.look());

  EXPECT_EQ(plain_.ring(0).head, 5u);
  EXPECT_EQ(rings_.waiting(0), 8u);
  EXPECT_EQ(take_all(0, 3), from(100, 8));
  EXPECT_EQ(plain_.ring(0).tail, 5u);
  EXPECT_EQ(rings_.counters().rejected, 1u);
}

TEST_P(Rings, AreTakenInPiecesOfAnySize) {
  ASSERT_GE(capacity_, 16u);
  for (const std::size_t at_once : {std::size_t{1}, std::size_t{7}, std::size_t{100}}) {
    const std::uint64_t tsc = 1000 * at_once;
    record(0, capacity_, tsc);
    ASSERT_TRUE(rings_.look());

    std::vector<Trap> out(at_once);
    const std::size_t taken = rings_.take(0, out);

    EXPECT_EQ(taken, std::min<std::size_t>(at_once, capacity_));
    EXPECT_EQ(rings_.waiting(0), capacity_ - taken);
    EXPECT_EQ(plain_.ring(0).tail, plain_.ring(0).head - capacity_ + taken) << "no more than these";
    EXPECT_EQ(out[0].tsc, tsc);
    EXPECT_EQ(take_all(0, at_once), from(tsc + taken, capacity_ - taken));
  }
  EXPECT_EQ(rings_.take(0, {}), 0u);
}

TEST_P(Rings, HaveLargerRecordsWhereListsCopyMemory) {
  FetchList list;
  list.add({.source = FetchLoad::kTask, .words = 40});
  const std::size_t run_bytes = list.record_bytes() - SHIM_RECORD_RUNS;
  ASSERT_TRUE(host_.table.insert(kThirdText, plain_.layout().slots));
  ASSERT_TRUE(host_.table.set_recording(std::array{kThirdText}, 2));
  ASSERT_TRUE(rings_.set_lists({FetchList(), list}));
  plain_.record_shift = static_cast<unsigned>(std::countr_zero(plain_.ring(0).record_bytes));

  EXPECT_EQ(rings_.run_bytes(), 1024u - SHIM_RECORD_CR3);
  EXPECT_TRUE(rings_.has_room_for(2));
  EXPECT_FALSE(rings_.has_room_for(3)) << "there is none";
  EXPECT_EQ(rings_.capacity(), plain_.layout().ring_records(10));
  EXPECT_LT(rings_.capacity(), capacity_);
  expect_told();
  for (const std::size_t ring : {0u, 3u}) {
    std::vector<std::byte> runs(3 * rings_.run_bytes());
    for (std::uint64_t n = 0; n < plain_.capacity(ring) + 1; ++n) {
      plain_.record(ring, record_of(2 * n, n % 2 == 0 ? kThirdText : kText),
                    run_of(0x1000, {n}, 40));
      ASSERT_TRUE(rings_.look());
      std::array<Trap, 3> out;
      ASSERT_EQ(rings_.take(ring, out, runs), 1u) << n;
      EXPECT_EQ(out[0].list != nullptr, n % 2 == 0) << n;
      if (out[0].list == nullptr) continue;
      EXPECT_EQ(*out[0].list, list);
      ASSERT_EQ(out[0].runs.size(), run_bytes);
      EXPECT_EQ(out[0].runs.data(), runs.data());
      EXPECT_TRUE(std::ranges::equal(out[0].runs, run_of(0x1000, {n}, 40)));
    }
  }
  EXPECT_EQ(rings_.counters().rejected, 0u);
}

TEST_P(Rings, HaveTheSmallestRecordsWhereNoListCopiesRegisters) {
  FetchList name({.registers = false, .ids = false}), ids({.registers = false, .ids = true});
  ids.add({.source = FetchLoad::kTask, .words = 2});
  ASSERT_TRUE(host_.table.insert(kThirdText, plain_.layout().slots));
  for (const GuestVirt at : {kText, kThirdText}) {
    ASSERT_TRUE(host_.table.set_recording(std::array{at}, at == kText ? 1 : 2));
  }
  ASSERT_TRUE(rings_.set_lists({name, ids}, false));
  plain_.record_shift = static_cast<unsigned>(std::countr_zero(plain_.ring(0).record_bytes));

  EXPECT_EQ(plain_.record_shift, kLeastRecordShift);
  EXPECT_GE(rings_.capacity(), 2 * capacity_);
  EXPECT_TRUE(rings_.has_room_for(1));
  EXPECT_TRUE(rings_.has_room_for(2));
  EXPECT_FALSE(rings_.has_room_for(0)) << "it copies registers";
  expect_told();
  shim_record record = full_record();
  const auto run = run_of(0x1000, {7}, 2);
  for (const GuestVirt at : {kText, kThirdText}) {
    record.address = at.raw();
    plain_.record_without_registers(0, record, at == kText ? std::span<const std::byte>() : run);
  }
  std::vector<std::byte> runs(2 * rings_.run_bytes());
  ASSERT_TRUE(rings_.look());
  std::array<Trap, 2> out;
  ASSERT_EQ(rings_.take(0, out, runs), 2u);

  for (const Trap& trap : out) {
    EXPECT_EQ(trap.tsc, 1234u);
    EXPECT_EQ(trap.percpu_base.raw(), 0u) << "not recorded";
    EXPECT_EQ(trap.cpu, 0u) << "whose ring it is";
    EXPECT_EQ(trap.registers.rdi | trap.registers.rsp | trap.registers.cr3, 0u) << "not recorded";
    EXPECT_EQ(trap.registers.rip, trap.address.raw());
    ASSERT_TRUE(trap.task);
    EXPECT_STREQ(trap.task->comm.data(), "sixteen letters");
  }
  EXPECT_FALSE(out[0].task->ids) << "not recorded";
  EXPECT_EQ(out[0].list, nullptr);
  ASSERT_TRUE(out[1].task->ids);
  EXPECT_EQ(out[1].task->ids->tgid, 100);
  EXPECT_TRUE(std::ranges::equal(out[1].runs, run));
  plain_.record_without_registers(0, record_of(1300, kSecondText));
  ASSERT_TRUE(rings_.look());
  EXPECT_EQ(rings_.take(0, out, runs), 0u) << "that one waits, and its list would not fit";
  EXPECT_EQ(rings_.counters().rejected, 1u);
  ASSERT_TRUE(rings_.set_lists({name}, true));
  EXPECT_TRUE(rings_.has_room_for(0));
  EXPECT_EQ(rings_.capacity(), capacity_);
}

TEST_P(Rings, GiveAStackAsMuchRoomAsThereIs) {
  FetchList stack;
  stack.add_stack();
  ASSERT_TRUE(rings_.set_lists({FetchList(), stack}));
  const std::size_t record_bytes = rings_.run_bytes() + SHIM_RECORD_CR3;

  EXPECT_EQ(rings_.lists().size(), 2u);
  EXPECT_EQ(rings_.lists()[1].record_bytes(), record_bytes);
  ASSERT_TRUE(rings_.set_lists({stack}));
  EXPECT_EQ(rings_.lists().size(), 1u) << "in place of those before";
  EXPECT_GE(rings_.capacity(), kFewestRecords);
  EXPECT_LT(rings_.capacity(), 2 * kFewestRecords) << "or it would be twice as large";
  EXPECT_LT(record_bytes, FetchList::kMostRecordBytes);
}

TEST_P(Rings, HoldAFewRecordsOrNone) {
  FetchList list;
  while (list.add({.words = 100, .offset = static_cast<std::int32_t>(8 * list.loads().size())})) {
  }
  ASSERT_GT(list.record_bytes(), 2048u);
  const auto told = rings_.set_lists({list});
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, ErrorCode::Limit);
  EXPECT_EQ(rings_.capacity(), capacity_) << "they are as before";
  expect_told();
}

TEST_P(Rings, LeaveARecordOutThatIsNoneOfOurs) {
  record(0, 5, 50);
  const std::uint64_t wrong = 7, nowhere = kText.raw() + 1, in_user_half = 0x401000;
  std::memcpy(plain_.record_at(0, 0).data(), &wrong, sizeof wrong);
  std::memcpy(plain_.record_at(0, 2).data() + SHIM_RECORD_ADDRESS, &nowhere, sizeof nowhere);
  std::memcpy(plain_.record_at(0, 4).data() + SHIM_RECORD_ADDRESS, &in_user_half,
              sizeof in_user_half);

  ASSERT_TRUE(rings_.look());
  std::array<Trap, 8> out;
  ASSERT_EQ(rings_.take(0, out), 2u);

  EXPECT_EQ(out[0].tsc, 51u);
  EXPECT_EQ(out[1].tsc, 53u);
  EXPECT_EQ(rings_.counters().rejected, 3u);
  EXPECT_EQ(plain_.ring(0).tail, 5u) << "they are gone, too";
}

TEST_P(Rings, FillOutWithWhatComesBehindThose) {
  record(0, 6, 50);
  const std::uint64_t wrong = 9;
  for (const std::uint64_t n : {0, 1, 3}) {
    std::memcpy(plain_.record_at(0, n).data(), &wrong, sizeof wrong);
  }
  ASSERT_TRUE(rings_.look());
  std::array<Trap, 2> out;

  ASSERT_EQ(rings_.take(0, out), 2u);

  EXPECT_EQ(out[0].tsc, 52u);
  EXPECT_EQ(out[1].tsc, 54u);
  EXPECT_EQ(rings_.waiting(0), 1u);
}

TEST_P(Rings, BelieveNoRecordOfAGuestThatClaimsMoreThanFits) {
  for (const std::size_t ring : {0u, 3u}) {
    record(ring, 2, 50);
    ASSERT_TRUE(rings_.look());
    ASSERT_EQ(take_all(ring).size(), 2u);
    const std::uint64_t rejected = rings_.counters().rejected;
    plain_.ring(ring).head = 2 + plain_.capacity(ring) + 1;

    ASSERT_TRUE(rings_.look());

    EXPECT_EQ(rings_.waiting(ring), 0u);
    EXPECT_EQ(rings_.counters().rejected, rejected + 1);
    EXPECT_EQ(plain_.ring(ring).tail, plain_.ring(ring).head);
    record(ring, 3, 60);
    ASSERT_TRUE(rings_.look());
    EXPECT_EQ(take_all(ring), from(60, 3)) << "what comes then is";
    plain_.ring(ring).head -= 1;
    ASSERT_TRUE(rings_.look());
    EXPECT_EQ(rings_.waiting(ring), 0u) << "nor one whose count runs backwards";
    EXPECT_EQ(rings_.counters().rejected, rejected + 2);
  }
}

TEST_P(Rings, AreBusyWhileTheGuestWritesThere) {
  plain_.ring(0).busy = 1;
  plain_.ring(3).busy = 1;

  ASSERT_TRUE(rings_.look());

  EXPECT_TRUE(rings_.is_busy(0) && rings_.is_busy(3));
  EXPECT_FALSE(rings_.is_busy(1) || rings_.is_busy(2));
  EXPECT_TRUE(rings_.is_any_busy());
  plain_.ring(0).busy = 0;
  EXPECT_TRUE(rings_.is_busy(0)) << "as of that look";
  EXPECT_TRUE(rings_.is_any_busy());
  plain_.ring(3).busy = 0;
  EXPECT_FALSE(rings_.is_any_busy());
  ASSERT_TRUE(rings_.look());
  EXPECT_FALSE(rings_.is_busy(0) || rings_.is_busy(3));
}

TEST_P(Rings, HaveNothingOfOneAnother) {
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    record(ring, plain_.capacity(ring), 1000 * (ring + 1));
  }

  ASSERT_TRUE(rings_.look());

  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    EXPECT_EQ(take_all(ring), from(1000 * (ring + 1), plain_.capacity(ring))) << ring;
  }
  EXPECT_EQ(rings_.counters().rejected, 0u);
}

TEST_P(Rings, SumUpWhatTheGuestCounts) {
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    record(ring, ring + 1, 0);
    plain_.ring(ring).dropped = 10 * (ring + 1);
    plain_.ring(ring).late = 100 * (ring + 1);
  }

  const RecordRings::Counters counters = rings_.counters();

  EXPECT_EQ(counters.records, 10u);
  EXPECT_EQ(counters.dropped, 100u);
  EXPECT_EQ(counters.late, 1000u);
  EXPECT_EQ(counters.rejected, 0u);
}

TEST_P(Rings, OfAShimThatIsGoneAreEmpty) {
  record(0, 3, 10);
  plain_.ring(1).busy = 1;
  ASSERT_TRUE(rings_.look());
  ASSERT_TRUE(rings_.waiting(0) == 3 && rings_.is_busy(1));
  plain_.control().left = 1;  // the guest starts another kernel
  const auto before = std::vector<std::byte>(plain_.bytes().begin(), plain_.bytes().end());

  EXPECT_FALSE(rings_.look());

  EXPECT_EQ(rings_.waiting(0), 0u);
  EXPECT_FALSE(rings_.is_busy(1));
  std::array<Trap, 4> out;
  EXPECT_EQ(rings_.take(0, out), 0u);
  EXPECT_TRUE(std::ranges::equal(plain_.bytes(), before)) << "nothing is written there";
}

TEST_P(Rings, OfMemoryThatIsAnothersNowAreEmpty) {
  record(0, 3, 10);
  plain_.bytes()[0] ^= std::byte{1};

  EXPECT_FALSE(rings_.look());

  EXPECT_EQ(rings_.waiting(0), 0u);
  EXPECT_EQ(host_.presence.last_known(), ShimState::Overwritten);
  plain_.bytes()[0] ^= std::byte{1};
  EXPECT_FALSE(rings_.look()) << "for good";
}

TEST_P(Rings, KeepTheirOwnCountWhereTheGuestChangesTheTail) {
  record(0, 2, 10);
  plain_.ring(0).tail = 1'000'000;
  ASSERT_TRUE(rings_.look());

  EXPECT_EQ(take_all(0), from(10, 2));

  EXPECT_EQ(plain_.ring(0).tail, 1'000'000u) << "it is not ours to write over";
  EXPECT_EQ(rings_.counters().rejected, 1u);
  record(0, 2, 12);
  ASSERT_TRUE(rings_.look());
  EXPECT_EQ(take_all(0), from(12, 2));
}

TEST_P(Rings, FollowNothingElseThatTheGuestWritesIntoTheirWords) {
  record(0, 3, 10);
  plain_.ring(0).most = ~std::uint64_t{0};
  plain_.ring(0).data = 0x1000;

  ASSERT_TRUE(rings_.look());

  EXPECT_EQ(take_all(0), from(10, 3));
}

TEST_P(Rings, AreNoneInALayoutWithoutThem) {
  PlainRegion plain(GetParam());
  RingHost host(plain, 0);
  const auto before = std::vector<std::byte>(plain.bytes().begin(), plain.bytes().end());

  EXPECT_EQ(host.rings.size(), 0u);
  EXPECT_FALSE(host.rings.look());
  EXPECT_FALSE(host.rings.is_any_busy());
  const RecordRings::Counters counters = host.rings.counters();
  EXPECT_EQ(counters.records | counters.dropped | counters.late | counters.rejected, 0u);
  EXPECT_TRUE(std::ranges::equal(plain.bytes(), before));
}

/// By copies alone, as only there the test knows when the host looks.
class CopiedRings : public Rings {
 protected:
  /// `during` happens between the two copies of a look, whose first one has all of the words.
  void look(const std::function<void()>& during) {
    unsigned copies = 0;
    plain_.meanwhile() = [&](std::uint64_t offset) {
      if (offset == plain_.layout().rings && ++copies == 2) during();
    };
    ASSERT_TRUE(rings_.look());
    plain_.meanwhile() = nullptr;
    ASSERT_EQ(copies, 2u);
  }
};

INSTANTIATE_TEST_SUITE_P(Every, CopiedRings, testing::Values(Reach::Copied), reach_name);

/// Else its record would be in no look, and the ring would count as quiet.
TEST_P(CopiedRings, AreBusyIfTheGuestHasEndedARecordDuringTheLook) {
  plain_.ring(0).busy = 1;

  look([this] {
    record(0, 1, 10);
    plain_.ring(0).busy = 0;
  });

  EXPECT_TRUE(rings_.is_busy(0));
  EXPECT_EQ(rings_.waiting(0), 1u) << "the head is of the second copy";
  EXPECT_EQ(take_all(0), from(10, 1));
}

TEST_P(CopiedRings, AreNotBusyIfTheGuestBeginsOneDuringTheLook) {
  look([this] { plain_.ring(0).busy = 1; });

  EXPECT_FALSE(rings_.is_busy(0)) << "that one has a later time";
  EXPECT_TRUE(rings_.is_any_busy());
}

/// A guest that writes anything anywhere in its rings, and now and then a record of ours.
TEST_P(Rings, GiveTrapsOfKnownAddressesAloneWhateverTheGuestWrites) {
  std::mt19937_64 random(20);
  const auto data = plain_.bytes().subspan(plain_.layout().rings);
  std::vector<Trap> out(40);
  std::uint64_t came = 0;
  for (unsigned round = 0; round < 1000; ++round) {
    const std::size_t ring = random() % rings_.size();
    shim_ring_words& words = plain_.ring(ring);
    switch (random() % 6) {
      case 0: words.head += random() % 8; break;
      case 1: words.head = random(); break;
      case 2: words.tail = random(); break;
      case 3: words.busy = random(); break;
      case 4:
        for (unsigned n = 0; n < 64; ++n) data[random() % data.size()] = std::byte(random());
        break;
      default:
        for (std::uint64_t n = random() % 20; n != 0; --n) {
          plain_.record(ring, record_of(random(), random() % 4 == 0 ? GuestVirt(random()) : kText));
        }
    }
    ASSERT_TRUE(rings_.look());
    (void)rings_.is_any_busy();
    for (std::size_t each = 0; each < rings_.size(); ++each) {
      ASSERT_LE(rings_.waiting(each), plain_.capacity(each)) << round;
      const std::size_t taken = rings_.take(each, std::span(out).first(random() % out.size()));
      came += taken;
      for (std::size_t n = 0; n < taken; ++n) ASSERT_TRUE(host_.table.knows(out[n].address));
    }
  }
  EXPECT_GT(came, 500u) << "records of ours are among them";
  EXPECT_GT(rings_.counters().rejected, 500u);
}

}  // namespace
}  // namespace ringside::vmm
