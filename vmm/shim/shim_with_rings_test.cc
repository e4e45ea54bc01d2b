#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "vmm/shim/fake_guest_for_tests.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_remains.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

/// Each part ends where the next one begins, or before it, and the last one inside.
void expect_parts_apart(const ShimLayout& layout) {
  EXPECT_LE(SHIM_CODE_SIZE, layout.slots);
  EXPECT_EQ(layout.slots % sizeof(std::uint64_t), 0u);
  EXPECT_LE(layout.slots_bytes >> layout.unit_shift, 1u << (16 + SHIM_BLOCK_SHIFT));
  EXPECT_LE(layout.slots + layout.slots_bytes, layout.data);
  EXPECT_EQ(layout.data % layout.page_bytes, 0u);
  EXPECT_LE(layout.data + SHIM_DATA_SIZE, layout.bytes);
  if (layout.ring_count == 0) return;
  EXPECT_GE(layout.rings, layout.data + SHIM_DATA_SIZE);
  EXPECT_TRUE(layout.is_data(layout.rings));
  EXPECT_GE(layout.ring_records(), kFewestRecords);
  EXPECT_EQ(layout.ring_records() & (layout.ring_records() - 1), 0u);
  std::uint64_t end = layout.ring_at(layout.ring_count);
  for (unsigned cpu = 0; cpu < layout.ring_count; ++cpu) {
    EXPECT_EQ(layout.ring_at(cpu), layout.rings + std::uint64_t{SHIM_RING_SIZE} * cpu);
    EXPECT_GE(layout.records_at(cpu), end) << cpu;
    end = layout.records_at(cpu) + std::uint64_t{SHIM_RECORD_SIZE} * layout.ring_records();
    EXPECT_GE(layout.nested_records_at(cpu), end) << cpu;
    end = layout.nested_records_at(cpu) +
          std::uint64_t{SHIM_RECORD_SIZE} * ShimLayout::nested_records();
  }
  EXPECT_LE(end, layout.bytes);
}

TEST(ShimLayoutWithRings, PartsLieApartInPlacesOfAnySize) {
  for (const std::uint64_t size : {64 * kMiB, 16 * kMiB, 15 * kMiB, kMiB, std::uint64_t{400} << 10,
                                   std::uint64_t{100} << 10, kSmallestShimBytes}) {
    for (const std::uint64_t at : {std::uint64_t{0x21000}, 32 * kMiB}) {
      const auto without = layout_shim({GuestPhys(at), size});
      ASSERT_TRUE(without);
      for (std::uint32_t cpus = 1; cpus <= SHIM_MAILBOXES; ++cpus) {
        const auto layout = layout_shim({GuestPhys(at), size}, {cpus});
        ASSERT_TRUE(layout);
        EXPECT_EQ(layout->bytes, without->bytes) << "no more than without";
        EXPECT_TRUE(layout->ring_count == cpus || layout->ring_count == 0);
        expect_parts_apart(*layout);
      }
    }
  }
}

TEST(ShimLayoutWithRings, HasNoneWhereTheyWouldBeTooSmall) {
  const GuestMemory::Extent smallest{kPlace, kSmallestShimBytes};
  const auto without = layout_shim(smallest), many = layout_shim(smallest, {8});
  ASSERT_TRUE(without && many);

  EXPECT_EQ(many->ring_count, 0u);
  EXPECT_EQ(many->data, without->data) << "and no room is lost";
  EXPECT_EQ(many->slots_bytes, without->slots_bytes);
  EXPECT_EQ(layout_shim(kLow, {2})->ring_count, 2u);
  EXPECT_EQ(layout_shim(kLow, {1000})->ring_count, 0u);
}

TEST(ShimLayoutWithRings, OfLargePagesLieInTheDatasOwn) {
  const auto layout = layout_shim({kPlace, 16 * kMiB}, {4});
  ASSERT_TRUE(layout);

  EXPECT_EQ(layout->page_bytes, kShimLargePage);
  EXPECT_EQ(layout->ring_count, 4u);
  EXPECT_EQ(layout->ring_records(), 1024u);
  EXPECT_EQ(layout->slots_bytes, 12 * kMiB) << "as without";
  EXPECT_EQ(layout_shim({kPlace, 16 * kMiB}, {1})->ring_records(), 4096u);
}

TEST(ShimLayoutWithRings, RingsTakeAllThatFewTrapPointsLeave) {
  const GuestMemory::Extent place{GuestPhys(0x21000), 476 << 10};
  const auto unknown = layout_shim(place, {2}), few = layout_shim(place, {2, 10}),
             many = layout_shim(place, {2, 45'659});
  ASSERT_TRUE(unknown && few && many);
  EXPECT_GE(few->ring_records(), 4 * unknown->ring_records());
  EXPECT_LT(many->ring_room, unknown->ring_room);
  EXPECT_GE(many->ring_room * 2, place.size / 8 - 4 * std::uint64_t{SHIM_PAGE})
      << "not much less than an eighth";
  EXPECT_TRUE(many->holds(45'659)) << "so many functions have probes on Debian's 6.12";
  for (const std::uint32_t points : {1u, 10u, 100u, 1000u, 3000u}) {
    const auto layout = layout_shim(place, {2, points});
    ASSERT_TRUE(layout && layout->ring_count == 2) << points;
    EXPECT_TRUE(layout->holds(2 * points + 4000)) << points << ", and more that come later";
    EXPECT_EQ(layout->expected_points, points);
  }
  const auto large = layout_shim({GuestPhys(0x21000), 7 * kMiB}, {1, 10});
  ASSERT_TRUE(large);
  EXPECT_LE(large->ring_room, 2 * kMiB);
}

TEST(ShimLayoutWithRings, HasRoomForWhatTheGuestFetchesBeforeTheSlots) {
  for (const GuestMemory::Extent place : {kLow,
                                          GuestMemory::Extent{GuestPhys(0x21000), 160 << 10},
                                          GuestMemory::Extent{GuestPhys(0x21000), 3 * kMiB},
                                          {kPlace, 16 * kMiB}}) {
    const auto with = layout_shim(place, {2});
    ASSERT_TRUE(with && with->ring_count == 2);
    EXPECT_EQ(with->slots % 8, 0u);
    EXPECT_GE(with->slots, SHIM_FETCH_AT + sizeof(shim_fetch));
  }
}

ShimKernelFacts facts_for_rings() {
  ShimKernelFacts with = facts();
  with.task = ShimTaskFacts{0x1000, 0x10, 0x20, 0x24, 0x30};
  with.cpu_number = 0x2000;
  return with;
}

Result<std::unique_ptr<Shim>> install_with_rings(FakeGuest& guest, const ShimKernelFacts& with,
                                                 RingWants rings) {
  PausedMachine paused = TRY(PausedMachine::pause(guest));
  return Shim::install(paused, kLow, with, rings);
}

TEST(ShimWithFetchLists, ThatWaitForSomeValuesGetMoreInPlace) {
  FakeGuest guest;
  const auto shim = install_with_rings(guest, facts_for_rings(), {2});
  ASSERT_TRUE(shim) << shim.error().message;
  FetchList all, some;
  all.add({.source = FetchLoad::kTask, .words = 1, .offset = 8});
  some.wait_only_for(FetchLoad::kTask, std::vector{GuestVirt(0xffff'8880'0000'1000)});
  const FetchFacts facts{.kernel_table = {GuestPhys(0x3000), 4, 0},
                         .direct_map = GuestVirt(0xffff888000000000),
                         .ram = {{GuestPhys(0), 0x100000}}};
  ASSERT_TRUE((*shim)->set_fetch_lists(facts, {all, some}));
  ASSERT_TRUE(some.add_waited_for(GuestVirt(0xffff'8880'0000'2000)));

  ASSERT_TRUE((*shim)->add_waited_for(GuestVirt(0xffff'8880'0000'2000)));

  shim_fetch fetch{};
  ASSERT_TRUE(guest.memory().read(kLow.base.wrapping_add(SHIM_FETCH_AT),
                                  std::as_writable_bytes(std::span(&fetch, 1))));
  const std::uint64_t base = header_at(guest, kLow.base).base;
  const auto in_guest = [&](unsigned number, std::size_t bytes) {
    std::vector<std::byte> list(bytes);
    EXPECT_TRUE(guest.memory().read(kLow.base.wrapping_add(fetch.lists[number] - base), list));
    return list;
  };
  EXPECT_EQ(in_guest(2, some.encode().size()), some.encode());
  EXPECT_EQ(in_guest(1, all.encode().size()), all.encode());
  for (unsigned n = 0; n < 3; ++n) (void)(*shim)->add_waited_for(GuestVirt(0xffff'8880'0000'3000));
  const auto no_room = (*shim)->add_waited_for(GuestVirt(0xffff'8880'0000'4000));
  ASSERT_FALSE(no_room);
  EXPECT_EQ(no_room.error().code, ErrorCode::Limit);
}

TEST(ShimWithFetchLists, AreWhereTheGuestFindsThem) {
  FakeGuest guest;
  const auto shim = install_with_rings(guest, facts_for_rings(), {2});
  ASSERT_TRUE(shim) << shim.error().message;
  const shim_header header = header_at(guest, kLow.base);
  const auto physical = [&](std::uint64_t address) {
    return kLow.base.wrapping_add(address - header.base);
  };
  FetchList first, second;
  first.add({.source = FetchLoad::kTask, .words = 1, .offset = 8});
  second.add({.source = FetchLoad::kTask, .words = 2, .offset = 16});
  const FetchFacts facts{.kernel_table = {GuestPhys(0x3000), 4, 0},
                         .direct_map = GuestVirt(0xffff888000000000),
                         .ram = {{GuestPhys(0), 0x100000}}};
  ASSERT_TRUE((*shim)->set_fetch_lists(facts, {first, second}));

  shim_fetch fetch{};
  ASSERT_TRUE(guest.memory().read(kLow.base.wrapping_add(SHIM_FETCH_AT),
                                  std::as_writable_bytes(std::span(&fetch, 1))));
  EXPECT_EQ(fetch.root, 0x3000u);
  EXPECT_EQ(fetch.direct_map, 0xffff888000000000u);
  EXPECT_EQ(fetch.ram_count, 1u);
  EXPECT_EQ(fetch.lists[0], header.base + SHIM_HEADER_FULL_LIST);
  for (const unsigned n : {3U, SHIM_LISTS - 1}) {
    EXPECT_EQ(fetch.lists[n], header.base + SHIM_HEADER_LEAST_LIST) << "nobody's";
  }
  EXPECT_EQ(header.least_list.copies, 0);
  EXPECT_EQ(header.full_list.copies, FetchList().head().copies);
  for (unsigned n = 1; n <= 2; ++n) {
    std::array<shim_load, 2> loads{};
    ASSERT_TRUE(guest.memory().read(physical(fetch.lists[n] + SHIM_LIST_SIZE),
                                    std::as_writable_bytes(std::span(loads))));
    EXPECT_EQ(loads[0].words, n);
    EXPECT_EQ(loads[0].offset, 8 * static_cast<int>(n));
    EXPECT_EQ(loads[1].words, 0);
    EXPECT_EQ(fetch.lists[n] % 8, 0u);
  }
  EXPECT_EQ((*shim)->state(), ShimState::There);
  EXPECT_FALSE((*shim)->set_fetch_lists(facts, std::vector<FetchList>(SHIM_LISTS, first)));
}

TEST(ShimWithRings, TellsTheGuestAllThatItNeedsForThem) {
  FakeGuest guest;
  const auto shim = install_with_rings(guest, facts_for_rings(), {2});
  ASSERT_TRUE(shim) << shim.error().message;

  const shim_header header = header_at(guest, kLow.base);
  EXPECT_EQ((*shim)->ring_count(), 2u);
  EXPECT_EQ((*shim)->rings().size(), 4u);
  EXPECT_EQ(header.rings, 2u);
  EXPECT_EQ(header.cpu_number, 0x2000);
  EXPECT_EQ(header.start_time, 0x30u);
  EXPECT_EQ(header.ring_controls, header.data + SHIM_DATA_SIZE);
  shim_ring ring;
  std::memcpy(&ring, guest.ram().data() + kLow.base.raw() + (header.ring_controls - header.base),
              sizeof ring);
  EXPECT_EQ(ring.first.most + 1, (*shim)->rings().capacity());
  EXPECT_EQ(ring.first.data, header.ring_controls + 2 * SHIM_RING_SIZE);
}

TEST(ShimWithRings, HasNoneWhereSoManyTrapPointsWouldNotFitBesideThem) {
  const auto without = layout_shim(kLow);
  ASSERT_TRUE(without);
  std::uint32_t most = 1;
  while (layout_shim(kLow, {1, most + 1})->holds(most + 1)) ++most;
  EXPECT_TRUE(without->holds(most + 1));
  for (const std::size_t more : {std::size_t{0}, std::size_t{1}}) {
    FakeGuest guest;
    const auto points = most + static_cast<std::uint32_t>(more);
    const auto shim = install_with_rings(guest, facts_for_rings(), {1, points});
    ASSERT_TRUE(shim) << shim.error().message;
    EXPECT_EQ((*shim)->ring_count(), 1 - more);
  }
  FakeGuest guest;
  const std::uint32_t points = most + 1;
  const auto shim = install_with_rings(guest, facts_for_rings(), {1, points, true});
  ASSERT_TRUE(shim);
  EXPECT_EQ((*shim)->ring_count(), 1u) << "it was told to have them";
}

TEST(ShimWithRings, HasNoneWhereItCannotFindTheCpuOrTheTask) {
  for (const bool knows_cpu : {false, true}) {
    FakeGuest guest;
    ShimKernelFacts with = facts_for_rings();
    if (knows_cpu) {
      with.task.reset();
    } else {
      with.cpu_number = 0;
    }
    const auto shim = install_with_rings(guest, with, {2});
    ASSERT_TRUE(shim);

    EXPECT_EQ((*shim)->ring_count(), 0u);
    EXPECT_EQ(header_at(guest, kLow.base).rings, 0u);
    EXPECT_EQ(header_at(guest, kLow.base).ring_controls, 0u);
  }
}

TEST(ShimWithRings, IsFoundAndServesTheNextTracer) {
  FakeGuest guest;
  const auto before = image_of(guest);
  {
    const auto shim = install_with_rings(guest, facts_for_rings(), {2, 10});
    ASSERT_TRUE(shim);
    const auto slot = (*shim)->allocate_slot(8);
    ASSERT_TRUE(slot && (*shim)->add_entry(kText, *slot));
    ASSERT_TRUE((*shim)->record_at(std::array{kText}));
    ASSERT_TRUE((*shim)->enable_entries(std::array{kText}));
  }
  const shim_header header = header_at(guest, kLow.base);
  guest.put64(kLow.base.raw() + (header.ring_controls - header.base) + SHIM_RING_HEAD, 77);

  const auto found = ShimRemains::find(guest.memory(), facts_for_rings());
  ASSERT_TRUE(found && *found) << found.error().message;
  const auto entries = (*found)->entries(guest.memory());
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].address, kText);
  EXPECT_EQ(entries[0].slot, GuestVirt(header.slots + ShimSlots::kTableBytes + SlotHeader::kBytes));
  auto machine = PausedMachine::pause(guest);
  ASSERT_TRUE(machine && (*found)->give_gate_back(*machine));
  const auto again = ShimRemains::find(guest.memory(), facts_for_rings());
  ASSERT_TRUE(again && *again);
  const auto shim = (*again)->take_over(*machine, facts_for_rings(), {});
  ASSERT_TRUE(shim) << shim.error().message;

  EXPECT_EQ((*shim)->ring_count(), 2u);
  EXPECT_EQ((*shim)->rings().counters().records, 0u) << "they are empty";
  EXPECT_TRUE((*shim)->rings().look());
  ASSERT_TRUE((*shim)->retire(*machine) && (*shim)->remove(*machine));
  EXPECT_TRUE(image_of(guest) == before);
}

TEST(ShimWithRings, IsRefusedWithAnotherCountThatItsPartsDoNotFit) {
  FakeGuest guest;
  ASSERT_TRUE(install_with_rings(guest, facts_for_rings(), {2}));
  const shim_header whole = header_at(guest, kLow.base);
  for (const std::uint32_t rings : {0u, SHIM_MAILBOXES, SHIM_MAILBOXES + 1, ~0u}) {
    shim_header changed = whole;
    changed.rings = rings;
    std::memcpy(guest.ram().data() + kLow.base.raw(), &changed, sizeof changed);
    EXPECT_FALSE(ShimRemains::find(guest.memory(), facts_for_rings())) << rings;
  }
}

/// Of processes, in a region of 4 KiB pages.
class ShimWithUserPoints : public testing::Test {
 protected:
  static FetchFacts fetch_facts() {
    return {.kernel_table = {GuestPhys(0x3000), 4, 0},
            .direct_map = GuestVirt(0xffff888000000000),
            .ram = {{GuestPhys(0), 0x100000}}};
  }
  static UserTrapPoint point_at(std::uint16_t offset) {
    static constexpr std::array kBefore{std::byte{0x90}, std::byte{0x90}};
    UserTrapPoint point;
    point.offset = offset;
    point.code = 0x800;
    point.distance = 0x800 - offset;
    point.mask = 0xffff, point.bytes = 0x1234;
    point.replaced = std::byte{0x55};
    point.down = 0x40;
    point.inode = GuestVirt(0xffff888000001000);
    point.page = 7;
    point.slot = 0x800;
    point.before = kBefore;
    return point;
  }
  void SetUp() override {
    auto made = install_with_rings(guest_, facts_for_rings(), {2});
    ASSERT_TRUE(made) << made.error().message;
    shim_ = std::move(*made);
  }
  std::uint64_t user_points() { return header_at(guest_, kLow.base).user_points; }
  /// In the order in which the stub meets them.
  std::vector<std::uint16_t> offsets() {
    std::vector<std::uint16_t> found;
    const auto remains = ShimRemains::find(guest_.memory(), facts_for_rings());
    if (!remains || !*remains) return found;
    for (const auto& each : (*remains)->user_points(guest_.memory())) {
      found.push_back(each.point.offset);
    }
    return found;
  }

  FakeGuest guest_;
  std::unique_ptr<Shim> shim_;
};

TEST_F(ShimWithUserPoints, HasNoneBeforeItServesProcesses) {
  EXPECT_EQ(user_points(), 0u);
  ASSERT_TRUE(shim_->serve_processes(fetch_facts()));
  EXPECT_NE(user_points(), 0u);
  EXPECT_EQ(shim_->state(), ShimState::There) << "that word may change";
  EXPECT_TRUE(offsets().empty());
}

TEST_F(ShimWithUserPoints, KnowsThemOnceTheyAreEnabled) {
  ASSERT_TRUE(shim_->serve_processes(fetch_facts()));
  std::vector<GuestVirt> names;
  for (const std::uint16_t offset : {0x10, 0x11, 0x12, 0xff0}) {
    const auto name = shim_->add_user_point(point_at(offset));
    ASSERT_TRUE(name) << name.error().message;
    EXPECT_TRUE(shim_->place().has_slot_at(*name));
    names.push_back(*name);
  }
  EXPECT_TRUE(offsets().empty());
  ASSERT_TRUE(shim_->record_at(std::span(names).first(1)));
  ASSERT_TRUE(shim_->enable_user_points(names));
  EXPECT_EQ(offsets(), (std::vector<std::uint16_t>{0x12, 0x11, 0x10, 0xff0}));
  shim_->forget_user_point(names[1]);
  EXPECT_EQ(offsets(), (std::vector<std::uint16_t>{0x12, 0x10, 0xff0}));
  // A place of the kernel's has nothing to do with them.
  const auto remains = ShimRemains::find(guest_.memory(), facts_for_rings());
  ASSERT_TRUE(remains && *remains);
  EXPECT_TRUE((*remains)->entries(guest_.memory()).empty());
}

TEST_F(ShimWithUserPoints, AreDescribedAfterTheyWereToldToRecord) {
  ASSERT_TRUE(shim_->serve_processes(fetch_facts()));
  const auto name = shim_->reserve_user_point();
  ASSERT_TRUE(name && shim_->record_at({&*name, 1}));
  const std::uint64_t before = kLow.base.raw() + name->offset_from(shim_->place().base);
  const auto byte_before = [&](std::uint64_t distance) { return guest_.ram()[before - distance]; };
  const std::byte list = byte_before(SHIM_SLOT_LIST);
  EXPECT_NE(list, std::byte{0}) << "it records";

  ASSERT_TRUE(shim_->describe_user_point(*name, point_at(0x123)));
  EXPECT_TRUE(offsets().empty());
  ASSERT_TRUE(shim_->enable_user_points({&*name, 1}));

  EXPECT_EQ(offsets(), std::vector<std::uint16_t>{0x123});
  EXPECT_EQ(byte_before(SHIM_SLOT_LIST), list);
  EXPECT_EQ(byte_before(SHIM_SLOT_REPLACED), std::byte{0x55});
}

TEST_F(ShimWithUserPoints, TellTheNextTracerWhereTheyStandAndWhatStoodThere) {
  ASSERT_TRUE(shim_->serve_processes(fetch_facts()));
  const auto name = shim_->add_user_point(point_at(0x123));
  ASSERT_TRUE(name && shim_->enable_user_points({&*name, 1}));
  const auto remains = ShimRemains::find(guest_.memory(), facts_for_rings());
  ASSERT_TRUE(remains && *remains);
  const auto left = (*remains)->user_points(guest_.memory());
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].replaced, std::byte{0x55});
  EXPECT_EQ(left[0].point.inode, 0xffff888000001000u);
  EXPECT_EQ(left[0].point.page, 7u);
  EXPECT_EQ(left[0].point.slot, 0x800);
  EXPECT_EQ(left[0].point.slot_bytes, 2);
  EXPECT_EQ(left[0].point.down, 0x40u);
  EXPECT_EQ(left[0].point.before[1], 0x90);
}

TEST_F(ShimWithUserPoints, AListThatDoesNotEndIsReadToABound) {
  ASSERT_TRUE(shim_->serve_processes(fetch_facts()));
  const auto name = shim_->add_user_point(point_at(0x123));
  ASSERT_TRUE(name && shim_->enable_user_points({&*name, 1}));
  const std::uint64_t at = kLow.base.raw() + name->offset_from(shim_->place().base);
  const auto itself = static_cast<std::uint32_t>(name->raw());
  std::memcpy(guest_.ram().data() + at, &itself, sizeof itself);
  EXPECT_LE(offsets().size(), kLow.size / sizeof(shim_user_point));
}

TEST_F(ShimWithUserPoints, ComeWithOtherTablesWhereTheGuestIsolatesThem) {
  FakeGuest guest;
  guest.isolate();
  ShimKernelFacts with = facts_for_rings();
  with.kernel_table.root = kIsolatedRoot;
  with.page_table_isolation = true;
  const auto shim = install_with_rings(guest, with, {2});
  ASSERT_TRUE(shim) << shim.error().message;
  EXPECT_TRUE((*shim)->serve_processes(fetch_facts()));
  EXPECT_EQ(header_at(guest, kLow.base).user_tables, std::uint32_t{SHIM_USER_TABLES});
  EXPECT_EQ(header_at(guest_, kLow.base).user_tables, 0u);
}

TEST_F(ShimWithUserPoints, AreRefusedWithoutRings) {
  FakeGuest guest;
  const auto shim = install_with_rings(guest, facts_for_rings(), {});
  ASSERT_TRUE(shim);
  EXPECT_FALSE((*shim)->serve_processes(fetch_facts()));
}

}  // namespace
}  // namespace ringside::vmm
