#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "providers/trap_points/armed_text.h"
#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

using namespace trap_point_fakes;

/// A kernel that mends faults. h: ftrace nop, mov rax [rdi], mov rax [rdi], mov rax [rdi], ret.
/// The search: ftrace nop, push rbp, ret. The mending: call of the search, ret.
struct MendingKernel : FakeKernel {
  explicit MendingKernel(bool entries_tell = true) {
    name({{0x000, "f"},
          {0x100, "h"},
          {0x140, "search_exception_tables"},
          {0x160, "fixup_exception"},
          {0x180, "end"}});
    constexpr std::uint32_t kRead = 3, kLooksAtItsPlace = 20, kNotKnown = 99;
    patched = {{at(0x105), 1, "exception table", {}, {}, at(0x10e), kRead},
               {at(0x108), 1, "exception table", {}, {}, at(0x10e), kLooksAtItsPlace},
               {at(0x10b), 1, "exception table", {}, {}, at(0x10e), kNotKnown}};
    if (!entries_tell) return;
    guest_linux::fakes::BtfWriter btf;
    const auto word = btf.integer("int", 4, true);
    btf.structure("exception_table_entry", 12, {{"data", word, 64}});
    CHECK(guest_linux::Btf::read(btf.blob(), nullptr, types_).has_value());
  }
  static GuestVirt at(std::uint64_t offset) { return GuestVirt(kText.raw() + offset); }
};

class MendedFaults : public TrapPoints {
 protected:
  MendedFaults() {
    machine_.put(0x100, code({0x0f, 0x1f, 0x44, 0, 0, 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x07, 0x48,
                              0x8b, 0x07, 0xc3}));
    machine_.put(0x140, code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}));
    machine_.put(0x160, code({0xe8, 0xdb, 0xff, 0xff, 0xff, 0xc3}));
    mended_.emplace(machine_, shim_, mending_);
  }
  std::string reason_of(std::uint64_t offset) {
    const auto site = mended_->examine(at(offset));
    return site ? "allowed" : site.error().message;
  }
  void arm_all() {
    auto paused = pause();
    ASSERT_TRUE(mended_->arm(paused));
  }

  MendingKernel mending_;
  std::optional<TrapPointTable> mended_;
};

TEST(MendsInSlot, IsSoForTheTypesThatLookAtNothingElse) {
  const auto mends = [](std::uint32_t type) {
    guest_linux::Kernel::PatchedSite entry;
    entry.data = 0x1200 | type;  // above it, a register and a value
    return mends_in_slot(entry, {});
  };
  for (const std::uint32_t type : {1, 3, 6, 8, 18, 19}) EXPECT_TRUE(mends(type)) << type;
  for (const std::uint32_t type : {0, 7, 20, 21, 99}) EXPECT_FALSE(mends(type)) << type;
}

TEST_F(MendedFaults, AreSearchedByTheInstructionsOwnPlace) {
  ASSERT_TRUE(mended_->examine_and_add(at(0x105)));
  arm_all();

  EXPECT_EQ(machine_.text(0x105), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x145), std::byte{0xcc}) << "after the ftrace site of the search";
  const GuestVirt slot = shim_.entries.at(at(0x105));
  EXPECT_EQ(shim_.faults, (std::map<GuestVirt, GuestVirt>{{slot, at(0x105)}}));
  const GuestVirt search = shim_.entries.at(at(0x145));
  EXPECT_EQ(shim_.searching, std::vector{search});
  EXPECT_EQ(shim_.slots.at(search)[vmm::TrapTable::kFaultSearchBytes], std::byte{0x55});
}

TEST_F(MendedFaults, AreSearchedWhileSomebodyMayBeInASlot) {
  ASSERT_TRUE(mended_->examine_and_add(at(0x105)));
  arm_all();
  auto paused = pause();

  ASSERT_TRUE(mended_->disarm(paused));

  EXPECT_EQ(machine_.text(0x105), std::byte{0x48});
  EXPECT_TRUE(mended_->searches_faults());
  EXPECT_EQ(machine_.text(0x145), std::byte{0xcc});
  ASSERT_TRUE(mended_->disarm_fault_search(paused));
  EXPECT_FALSE(mended_->searches_faults());
  EXPECT_EQ(machine_.text(0x145), std::byte{0x55});
}

TEST_F(MendedFaults, AreSearchedWhenTheProbeWasThereBefore) {
  ASSERT_TRUE(mended_->examine_and_add(at(0x145)));
  EXPECT_FALSE(mended_->searches_faults());
  ASSERT_TRUE(mended_->examine_and_add(at(0x105)));
  mended_->release(at(0x145));
  arm_all();

  EXPECT_TRUE(mended_->searches_faults()) << "its probe is gone, and it stays";
  auto paused = pause();
  EXPECT_FALSE(*mended_->step_aside(paused, at(0x141))) << "also where a kprobe is to come";
  EXPECT_EQ(machine_.text(0x145), std::byte{0xcc});
}

TEST_F(MendedFaults, HaveNoProbeWithoutTheSearch) {
  const auto id = mended_->examine_and_add(at(0x105));
  ASSERT_TRUE(id);
  machine_.put(0x145, code({0x90}));

  arm_all();

  EXPECT_FALSE(mended_->is_armed(*id)) << "its fault would be an oops";
  EXPECT_EQ(machine_.text(0x105), std::byte{0x48});
  EXPECT_EQ(mended_->drop_changed().size(), 2u);
}

TEST_F(MendedFaults, AreSearchedAgainOnceTheTextOfTheSearchIsBack) {
  ASSERT_TRUE(mended_->examine_and_add(at(0x105)));
  machine_.put(0x145, code({0x90}));
  arm_all();
  EXPECT_FALSE(mended_->searches_faults());
  machine_.put(0x145, code({0x55}));

  ASSERT_TRUE(mended_->examine_and_add(at(0x105)));
  arm_all();

  EXPECT_TRUE(mended_->searches_faults());
  EXPECT_EQ(machine_.text(0x105), std::byte{0xcc});
}

TEST_F(MendedFaults, AreRefusedWhereTheyAreNotAsInTheirPlace) {
  EXPECT_EQ(reason_of(0x105), "allowed");
  EXPECT_NE(reason_of(0x108).find("own place"), std::string::npos) << reason_of(0x108);
  EXPECT_NE(reason_of(0x10b).find("own place"), std::string::npos) << reason_of(0x10b);
  mending_.patched.insert(mending_.patched.begin() + 1, {at(0x106), 1, "jump label"});
  EXPECT_NE(reason_of(0x105).find("jump label"), std::string::npos) << reason_of(0x105);
}

TEST_F(MendedFaults, AreRefusedInAKernelThatIsNotAsOursAre) {
  const auto reason_with = [this](std::vector<std::pair<std::uint64_t, const char*>> names) {
    FakeKernel other;
    other.name(std::move(names));
    other.patched = mending_.patched;
    guest_linux::fakes::BtfWriter btf;
    const auto word = btf.integer("int", 4, true);
    btf.structure("exception_table_entry", 12, {{"data", word, 64}});
    CHECK(guest_linux::Btf::read(btf.blob(), nullptr, other.types_to_fill()).has_value());
    TrapPointTable table(machine_, shim_, other);
    const auto site = table.examine(at(0x105));
    return site ? "allowed" : site.error().message;
  };
  constexpr const char* kSearchName = "search_exception_tables";
  constexpr const char* kMenderName = "fixup_exception";
  EXPECT_EQ(reason_with({{0x100, "h"}, {0x140, kSearchName}, {0x160, kMenderName}, {0x180, "end"}}),
            "allowed");
  for (const char* missing : {kSearchName, kMenderName}) {
    const auto name = [missing](const char* one) { return one == missing ? "another" : one; };
    EXPECT_NE(
        reason_with(
            {{0x100, "h"}, {0x140, name(kSearchName)}, {0x160, name(kMenderName)}, {0x180, "end"}})
            .find("has no function search_exception_tables or fixup_exception"),
        std::string::npos)
        << missing;
  }
}

TEST_F(MendedFaults, AreRefusedWhereTheSearchCannotBeReached) {
  set_kprobe(0x145);
  mended_->look_again();
  EXPECT_NE(reason_of(0x105).find("kprobe"), std::string::npos) << reason_of(0x105);

  MendingKernel old(false);
  TrapPointTable without(machine_, shim_, old);
  EXPECT_FALSE(without.examine(at(0x105)));
  machine_.put(0x160, code({0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}));
  TrapPointTable inlined(machine_, shim_, mending_);
  const auto site = inlined.examine(at(0x105));
  ASSERT_FALSE(site);
  EXPECT_NE(site.error().message.find("does not call"), std::string::npos) << site.error().message;
}

}  // namespace
}  // namespace ringside::providers
