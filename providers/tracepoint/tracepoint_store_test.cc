#include "providers/tracepoint/tracepoint_store.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "providers/tracepoint/tracepoints_for_tests.h"

namespace ringside::providers {
namespace {

using namespace tracepoint_fakes;

/// f has points at 5, 6 and 13, g at 0x106.
class StoredTracepoints : public Tracepoints {
 protected:
  using Id = TracepointStore::Id;

  Id make(std::uint64_t offset) {
    const auto id = store_.add(*table_.examine(at(offset)));
    EXPECT_TRUE(id) << id.error().message;
    return id.value_or(0);
  }
  void stand(const std::vector<Id>& ids) {
    ASSERT_TRUE(store_.enter_table(ids));
    store_.mark_standing(ids, std::vector(ids.size(), Tracepoint::Stage::Armed));
  }
  std::vector<Id> standing() const { return {store_.standing().begin(), store_.standing().end()}; }

  const Result<std::optional<GuestVirt>> no_kexec_ = std::optional<GuestVirt>();
  const Result<GuestVirt> no_search_ = fail(ErrorCode::Unsupported, "none");
  DisplacedCode displaced_{shim_, {no_kexec_, no_search_}};
  TracepointStore store_{shim_, displaced_};
};

TEST_F(StoredTracepoints, StandInTheOrderOfTheirAddresses) {
  const Id last = make(0x106), first = make(0x005), middle = make(0x00d), between = make(0x006);
  std::vector<Id> some{last, middle, first};

  store_.sort_by_address(some);
  stand(some);
  stand({between});

  EXPECT_EQ(some, (std::vector{first, middle, last}));
  EXPECT_EQ(standing(), (std::vector{first, between, middle, last}));
}

TEST_F(StoredTracepoints, HaveTextBelowThemWhileTheyStand) {
  const Id id = make(0x005);
  EXPECT_TRUE(store_.are_there());
  EXPECT_TRUE(store_.below(at(0x005)).empty());

  stand({id});
  ASSERT_EQ(store_.below(at(0x005)).size(), 1u);
  EXPECT_EQ(store_.below(at(0x005))[0], std::byte{0x55});
  EXPECT_TRUE(store_.below(at(0x006)).empty());

  store_.retire([](const Tracepoint&) { return true; });
  EXPECT_TRUE(store_.below(at(0x005)).empty());
}

TEST_F(StoredTracepoints, StandOnWhereTheirByteCouldNotBeRestored) {
  const Id left = make(0x005), restored = make(0x00d);
  stand({left, restored});

  store_.retire([this](const Tracepoint& point) { return point.address() == at(0x00d); });

  EXPECT_EQ(standing(), std::vector{left});
  EXPECT_EQ(store_[left].stage, Tracepoint::Stage::Armed);
  EXPECT_EQ(store_[restored].stage, Tracepoint::Stage::Retired);
}

TEST_F(StoredTracepoints, AreToldOnceWhereTheyWereDropped) {
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

TEST_F(StoredTracepoints, InAModulesPlaceAreToldOnlyIfTheyStood) {
  const Id stood = make(0x005), never = make(0x00d);
  stand({stood});

  store_.drop_in({at(0), at(0x100)});

  EXPECT_EQ(store_.take_dropped(), std::vector{at(0x005)});
  EXPECT_EQ(store_[never].stage, Tracepoint::Stage::Dropped);
  EXPECT_TRUE(store_.standing().empty());
}

TEST_F(StoredTracepoints, AreParkedOnlyIfTheyDoNotStand) {
  const Id stands = make(0x005), used = make(0x00d), unused = make(0x106);
  stand({stands});
  store_.release(at(0x106));

  store_.park_unused();
  EXPECT_EQ(store_[unused].stage, Tracepoint::Stage::Parked);
  EXPECT_EQ(store_[used].stage, Tracepoint::Stage::Prepared);

  store_.park_all();
  EXPECT_EQ(store_[used].stage, Tracepoint::Stage::Parked);
  EXPECT_EQ(store_[stands].stage, Tracepoint::Stage::Armed);
}

}  // namespace
}  // namespace ringside::providers
