#include "providers/trap_points/trap_point_store.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

using namespace trap_point_fakes;

/// f has points at 5, 6 and 13, g at 0x106.
class StoredTrapPoints : public TrapPoints {
 protected:
  using Id = TrapPointStore::Id;

  Id make(std::uint64_t offset) {
    const auto id = store_.add(*table_.examine(at(offset)));
    EXPECT_TRUE(id) << id.error().message;
    return id.value_or(0);
  }
  void stand(const std::vector<Id>& ids) {
    ASSERT_TRUE(store_.enter_table(ids));
    store_.mark_standing(ids, std::vector(ids.size(), TrapPoint::Stage::Armed));
  }
  std::vector<Id> standing() const { return {store_.standing().begin(), store_.standing().end()}; }

  const Result<std::optional<GuestVirt>> no_kexec_ = std::optional<GuestVirt>();
  const Result<GuestVirt> no_search_ = fail(ErrorCode::Unsupported, "none");
  DisplacedCode displaced_{shim_, {no_kexec_, no_search_}};
  TrapPointStore store_{shim_, displaced_};
};

TEST_F(StoredTrapPoints, StandInTheOrderOfTheirAddresses) {
  const Id last = make(0x106), first = make(0x005), middle = make(0x00d), between = make(0x006);
  std::vector<Id> some{last, middle, first};

  store_.sort_by_address(some);
  stand(some);
  stand({between});

  EXPECT_EQ(some, (std::vector{first, middle, last}));
  EXPECT_EQ(standing(), (std::vector{first, between, middle, last}));
}

TEST_F(StoredTrapPoints, HaveTextBelowThemWhileTheyStand) {
  const Id id = make(0x005);
  EXPECT_TRUE(store_.are_there());
  EXPECT_TRUE(store_.below(at(0x005)).empty());

  stand({id});
  ASSERT_EQ(store_.below(at(0x005)).size(), 1u);
  EXPECT_EQ(store_.below(at(0x005))[0], std::byte{0x55});
  EXPECT_TRUE(store_.below(at(0x006)).empty());

  store_.retire([](const TrapPoint&) { return true; });
  EXPECT_TRUE(store_.below(at(0x005)).empty());
}

TEST_F(StoredTrapPoints, StandOnWhereTheirByteCouldNotBeRestored) {
  const Id left = make(0x005), restored = make(0x00d);
  stand({left, restored});

  store_.retire([this](const TrapPoint& point) { return point.address() == at(0x00d); });

  EXPECT_EQ(standing(), std::vector{left});
  EXPECT_EQ(store_[left].stage, TrapPoint::Stage::Armed);
  EXPECT_EQ(store_[restored].stage, TrapPoint::Stage::Retired);
}

TEST_F(StoredTrapPoints, AreToldOnceWhereTheyWereDropped) {
  const Id stood = make(0x005), never = make(0x00d), stays = make(0x106);
  stand({stood, stays});

  store_.drop_standing(std::vector{stood});
  store_.drop(never);

  EXPECT_EQ(standing(), std::vector{stays});
  EXPECT_EQ(store_.take_dropped(), (std::vector{at(0x005), at(0x00d)}));
  EXPECT_TRUE(store_.take_dropped().empty());
  EXPECT_FALSE(shim_.entries.contains(at(0x005)));
  EXPECT_TRUE(shim_.entries.contains(at(0x106)));
}

TEST_F(StoredTrapPoints, InAModulesPlaceAreToldOnlyIfTheyStood) {
  const Id stood = make(0x005), never = make(0x00d);
  stand({stood});

  store_.drop_in({at(0), at(0x100)});

  EXPECT_EQ(store_.take_dropped(), std::vector{at(0x005)});
  EXPECT_EQ(store_[never].stage, TrapPoint::Stage::Dropped);
  EXPECT_TRUE(store_.standing().empty());
}

TEST_F(StoredTrapPoints, AreParkedOnlyIfTheyDoNotStand) {
  const Id stands = make(0x005), used = make(0x00d), unused = make(0x106);
  stand({stands});
  store_.release(at(0x106));

  store_.park_unused();
  EXPECT_EQ(store_[unused].stage, TrapPoint::Stage::Parked);
  EXPECT_EQ(store_[used].stage, TrapPoint::Stage::Prepared);

  store_.park_all();
  EXPECT_EQ(store_[used].stage, TrapPoint::Stage::Parked);
  EXPECT_EQ(store_[stands].stage, TrapPoint::Stage::Armed);
}

/// g begins like f, and then: mov rax, rdi; je; mov rax, rdi; jmp f; jmp f; ret.
class SharedSlots : public StoredTrapPoints {
 protected:
  SharedSlots() {
    shim_.shares = true;
    shim_.has_rings = true;
    machine_.put(0x100, code({0x55, 0x48, 0x89, 0xf8, 0x74, 0x00, 0x48, 0x89, 0xf8, 0xe9,
                              0xf2, 0xfe, 0xff, 0xff, 0xe9, 0xed, 0xfe, 0xff, 0xff, 0xc3}));
  }
  GuestVirt slot(std::uint64_t offset) const { return shim_.known.at(at(offset)); }
  unsigned length(std::uint64_t offset) const {
    return shim_.headers.at(slot(offset)).return_length;
  }
};

TEST_F(SharedSlots, AreOfAllTrapPointsWithTheSameCode) {
  for (const std::uint64_t offset : {0x005, 0x100, 0x101, 0x104, 0x106, 0x109, 0x10e}) make(offset);

  EXPECT_EQ(slot(0x005), slot(0x100)) << "push rbp";
  EXPECT_EQ(length(0x005), 1u);
  EXPECT_EQ(slot(0x101), slot(0x106)) << "mov rax, rdi";
  EXPECT_EQ(length(0x101), 3u);
  EXPECT_EQ(shim_.slots.at(slot(0x101)), code({0x48, 0x89, 0xf8, 0xc3}));
  EXPECT_EQ(slot(0x109), slot(0x10e)) << "to the same place";
  EXPECT_EQ(length(0x109), 0u) << "it does not come back";
  EXPECT_EQ(length(0x104), 0u) << "je has its own way back";
  EXPECT_EQ(shim_.slots.size(), 4u);
}

TEST_F(SharedSlots, AreApartWhereListsDiffer) {
  for (const std::uint64_t offset : {0x005, 0x100, 0x101, 0x106}) make(offset);
  const GuestVirt push = slot(0x005), move = slot(0x101);

  ASSERT_TRUE(store_.record_at(std::array{at(0x100), at(0x101)}, 3));
  EXPECT_EQ(slot(0x005), push) << "it waits, as before";
  EXPECT_NE(slot(0x100), push);
  EXPECT_NE(slot(0x101), move);
  EXPECT_EQ(slot(0x106), move);
  EXPECT_EQ(shim_.slots.at(slot(0x100)), shim_.slots.at(push));
  ASSERT_TRUE(store_.record_at(std::array{at(0x106)}, 3));
  EXPECT_EQ(slot(0x106), slot(0x101));
  EXPECT_EQ(shim_.slots.size(), 4u);
}

TEST_F(SharedSlots, OfOneTrapPointAloneTakeItsList) {
  make(0x104);
  const GuestVirt before = slot(0x104);

  ASSERT_TRUE(store_.record_at(std::array{at(0x104)}, 3));

  EXPECT_EQ(slot(0x104), before);
  EXPECT_EQ(shim_.slots.size(), 1u);
}

TEST_F(SharedSlots, AreAsBeforeWhereThereIsNoRoomForAll) {
  for (const std::uint64_t offset : {0x005, 0x100, 0x104}) make(offset);
  const GuestVirt push = slot(0x005), alone = slot(0x104);
  shim_.full = true;

  EXPECT_FALSE(store_.record_at(std::array{at(0x104), at(0x005)}, 3));

  EXPECT_EQ(slot(0x005), push);
  EXPECT_EQ(slot(0x104), alone);
  EXPECT_TRUE(shim_.recording.empty());
  ASSERT_TRUE(store_.record_at(std::array{at(0x104)}, 4)) << "its slot is its own again";
  EXPECT_EQ(slot(0x104), alone);
}

TEST_F(SharedSlots, HaveTheWayBackOnTheStack) {
  make(0x005);
  make(0x104);
  ASSERT_EQ(displaced_.slots().size(), 3u) << "two parts, and one with a jump back";
  EXPECT_EQ(displaced_.slots()[0].begin, slot(0x005));
  EXPECT_EQ(displaced_.slots()[0].words, 1u);
  EXPECT_EQ(displaced_.slots()[1].words, 2u);
  EXPECT_EQ(displaced_.slots()[2].words, 0u);
  EXPECT_EQ(displaced_.slots()[2].address, at(0x104));

  const vmm::PageTableReader live(machine_.memory(), kernel_.table());
  const auto nobody = displaced_.ways_back(live, {});
  ASSERT_TRUE(nobody);
  EXPECT_TRUE(nobody->empty());
  const auto known = displaced_.ways_back(live, std::array{slot(0x104)});
  ASSERT_TRUE(known);
  EXPECT_EQ(*known, std::vector{at(0x106)});
  EXPECT_FALSE(displaced_.ways_back(live, std::array{slot(0x005).wrapping_add(3)}));
}

}  // namespace
}  // namespace ringside::providers
