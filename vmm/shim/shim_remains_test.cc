#include "vmm/shim/shim_remains.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>

#include "vmm/shim/fake_guest_for_tests.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

constexpr GuestVirt kOther{kText.raw() + 0x40};

/// A guest whose tracer died with two trap points.
class Remains : public testing::TestWithParam<bool> {
 protected:
  Remains() {
    if (GetParam()) guest_.isolate();
    facts_ = GetParam() ? isolated_facts() : facts();
    clean_ = image_of(guest_);
    auto shim = install(guest_, facts_, kLow);
    EXPECT_TRUE(shim) << shim.error().message;
    shim_ = std::move(*shim);
    for (const GuestVirt at : {kText, kOther}) {
      slots_.push_back(*shim_->allocate_slot(4));
      const std::array code = {std::byte{0x55}, std::byte{0xe9}};
      EXPECT_TRUE(shim_->write_slot(slots_.back(), code));
      EXPECT_TRUE(shim_->add_entry(at, slots_.back()));
      EXPECT_TRUE(shim_->enable_entries(std::array{at}));
    }
    shim_->activate();
  }
  Result<std::optional<ShimRemains>> find() { return ShimRemains::find(guest_.memory(), facts_); }
  std::string refusal() {
    const auto found = find();
    if (found) return "not refused";
    return found.error().message;
  }
  PausedMachine paused() { return std::move(*PausedMachine::pause(guest_)); }
  shim_header header() { return header_at(guest_, kLow.base); }
  void put_header(const shim_header& header) {
    std::memcpy(guest_.ram().data() + kLow.base.raw(), &header, sizeof header);
  }

  FakeGuest guest_;
  ShimKernelFacts facts_;
  std::vector<std::byte> clean_;
  std::unique_ptr<Shim> shim_;  // of the tracer that died
  std::vector<GuestVirt> slots_;
};

INSTANTIATE_TEST_SUITE_P(Isolated, Remains, testing::Bool());

TEST_P(Remains, AreFoundWithAllThatTheyHold) {
  const auto found = find();

  ASSERT_TRUE(found && *found) << found.error().message;
  const ShimRemains& remains = **found;
  EXPECT_EQ(remains.extent().base, kLow.base);
  EXPECT_EQ(remains.extent().size, kLow.size);
  EXPECT_EQ(remains.place().base.raw(), header().base);
  EXPECT_EQ(remains.jump_entry().raw(), header().base + SHIM_JUMP_ENTRY);
  EXPECT_TRUE(remains.owner().is_alive()) << "this process";
  EXPECT_GT(remains.heartbeat(guest_.memory()), 0u);
  auto entries = remains.entries(guest_.memory());
  ASSERT_EQ(entries.size(), 2u);
  std::ranges::sort(entries, {}, &ShimRemains::Entry::address);
  EXPECT_EQ(entries[0].address, kText);
  EXPECT_EQ(entries[0].slot, slots_[0]);
  EXPECT_EQ(entries[1].address, kOther);
  std::array<std::byte, 2> code{};
  EXPECT_EQ(remains.read_slot(guest_.memory(), slots_[1], code), 2u);
  EXPECT_EQ(code[0], std::byte{0x55});
}

TEST_P(Remains, MayLieWhereTheKernelsRegionBegins) {
  const GuestVirt home(header().base);
  facts_.image_region_start = home;
  const auto found = find();
  EXPECT_TRUE(found && *found) << found.error().message;

  facts_.image_region_start = home.wrapping_add(1);
  const auto below = find();
  EXPECT_FALSE(below && *below) << "not all of it is in the region";
}

TEST_P(Remains, TellOfEntriesThatWereTakenOut) {
  shim_->disable_entry(kText);

  const auto found = find();

  ASSERT_TRUE(found && *found);
  auto entries = (*found)->entries(guest_.memory());
  ASSERT_EQ(entries.size(), 2u);
  std::ranges::sort(entries, {}, &ShimRemains::Entry::address);
  EXPECT_EQ(entries[0].address, kText);
  EXPECT_FALSE(entries[0].slot.has_value());
  EXPECT_EQ(entries[1].slot, slots_[1]);
}

TEST_P(Remains, AreTakenOutToTheLastByte) {
  const auto found = find();
  ASSERT_TRUE(found && *found);
  auto machine = paused();

  ASSERT_TRUE((*found)->silence(machine));
  ASSERT_TRUE((*found)->give_gate_back(machine));
  EXPECT_EQ(guest_.gate_handler(), kHandler);
  ASSERT_TRUE((*found)->remove(machine));

  EXPECT_TRUE(image_of(guest_) == clean_);
  EXPECT_FALSE(*find());
}

TEST(ShimRemains, OfATracerWithoutTypesAreFoundByOneThatHasThem) {
  ShimKernelFacts with_types = facts();
  with_types.task = ShimTaskFacts{0x1000, 0x10, 0x20, 0x24, 0x30};
  with_types.cpu_number = 0x2000;
  ShimKernelFacts other_types = with_types;
  other_types.task->comm = 0x18;
  for (const auto& [left_by, is_found] :
       {std::pair(facts(), true), std::pair(with_types, true), std::pair(other_types, false)}) {
    FakeGuest guest;
    ASSERT_TRUE(install(guest, left_by, kLow));
    const auto found = ShimRemains::find(guest.memory(), with_types);
    EXPECT_EQ(found && *found, is_found);
  }
}

TEST_P(Remains, AreFoundWithoutTheGate) {
  guest_.set_gate(kHandler, 0x8e00);  // it died after it had given that back

  const auto found = find();

  ASSERT_TRUE(found && *found);
  EXPECT_FALSE((*found)->is_out_of_reach()) << "page tables lead to it";
  EXPECT_FALSE((*found)->is_retired()) << "its tracer has not ended well";
  auto machine = paused();
  ASSERT_TRUE((*found)->give_gate_back(machine) && (*found)->remove(machine));
  EXPECT_TRUE(image_of(guest_) == clean_);
}

TEST_P(Remains, AreNotRetiredWhileTheGateLeadsThere) {
  shim_header nobodys = header();
  nobodys.owner = 0;
  put_header(nobodys);

  const auto found = find();

  ASSERT_TRUE(found && *found);
  EXPECT_FALSE((*found)->is_retired());
  guest_.set_gate(kHandler, 0x8e00);
  EXPECT_TRUE((*find())->is_retired());
  const unsigned home = home_of(nobodys);
  guest_.put64(kPmd.raw() + 8 * home, 0);
  guest_.put64(kUserPmd.raw() + 8 * home, 0);
  EXPECT_FALSE((*find())->is_retired()) << "nothing leads there";
}

TEST_P(Remains, AreFoundWhereNothingLeadsToThem) {
  guest_.set_gate(kHandler, 0x8e00);
  const unsigned home = home_of(header());
  guest_.put64(kPmd.raw() + 8 * home, 0);  // it died while it took that out, or put it in
  guest_.put64(kUserPmd.raw() + 8 * home, 0);

  const auto found = find();

  ASSERT_TRUE(found && *found);
  EXPECT_TRUE((*found)->is_out_of_reach());
  auto machine = paused();
  ASSERT_TRUE((*found)->remove(machine));
  EXPECT_TRUE(image_of(guest_) == clean_);
}

TEST_P(Remains, AreFoundInTheMemoryOfAnotherKernel) {
  guest_.set_gate(kHandler, 0x8e00);
  const unsigned home = home_of(header());
  guest_.put64(kPmd.raw() + 8 * home, 0x1e3);  // it has something of its own there
  guest_.put64(kUserPmd.raw() + 8 * home, 0);
  shim_header other = header();
  other.original += 0x20'0000;
  put_header(other);

  const auto found = find();

  ASSERT_TRUE(found && *found) << found.error().message;
  EXPECT_TRUE((*found)->is_out_of_reach());
  EXPECT_FALSE((*found)->is_retired());
  auto machine = paused();
  EXPECT_FALSE((*found)->take_over(machine, facts_, {}));
  ASSERT_TRUE((*found)->remove(machine));
  EXPECT_EQ(guest_.pmd(home), 0x1e3u);
  EXPECT_FALSE(*find());
}

TEST_P(Remains, ThatNothingLeadsToAndThatAreNotOursAreNone) {
  guest_.set_gate(kHandler, 0x8e00);
  const unsigned home = home_of(header());
  guest_.put64(kPmd.raw() + 8 * home, 0);
  guest_.put64(kUserPmd.raw() + 8 * home, 0);
  shim_header other = header();
  other.version = SHIM_VERSION - 1;
  put_header(other);

  const auto found = find();

  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(*found);
}

TEST_P(Remains, OfAnotherVersionAreRefused) {
  shim_header other = header();
  other.version = SHIM_VERSION - 1;
  put_header(other);

  EXPECT_NE(refusal().find("another version"), std::string::npos) << refusal();
}

TEST_P(Remains, NoWordOfTheHeaderIsBelieved) {
  const shim_header whole = header();
  for (std::size_t word = 1; word < sizeof whole / 8; ++word) {
    shim_header changed = whole;
    std::uint64_t value = 0;
    auto* const at = reinterpret_cast<std::byte*>(&changed) + 8 * word;
    std::memcpy(&value, at, 8);
    value ^= 0x1000;
    std::memcpy(at, &value, 8);
    if (changed.owner != whole.owner || changed.owner_start != whole.owner_start ||
        changed.machine != whole.machine) {
      continue;
    }
    put_header(changed);
    EXPECT_FALSE(find()) << word;
  }
}

/// The header of a shim that says that it is mapped at another address.
shim_header moved_to(shim_header header, std::uint64_t base) {
  const std::uint64_t by = base - header.base;
  for (std::uint64_t* const address : {&header.base, &header.data, &header.slots}) {
    *address += by;
  }
  return header;
}

TEST_P(Remains, LieInTheRegionOfTheImage) {
  const shim_header whole = header();
  const std::uint64_t start = facts_.image_region_start.raw(), end = facts_.image_region_end.raw();
  for (const std::uint64_t outside : {start - 2 * kMiB, end, whole.base + 0x1000}) {
    put_header(moved_to(whole, outside));
    EXPECT_NE(refusal().find("header is damaged"), std::string::npos) << refusal();
  }
  for (const std::uint64_t inside : {start, end - 2 * kMiB}) {
    put_header(moved_to(whole, inside));
    EXPECT_TRUE(find()) << "its tracer may have died before it was mapped: " << refusal();
  }
}

TEST_P(Remains, NorIsItsCode) {
  guest_.ram()[kLow.base.raw() + shim_image_size - 1] ^= std::byte{1};

  EXPECT_NE(refusal().find("damaged"), std::string::npos) << refusal();
}

TEST_P(Remains, NorIsTheGateWhereItLeadsThereInAnotherWay) {
  for (const std::uint64_t attributes : {0x8f00, 0x8e03}) {
    guest_.set_gate(guest_.gate_handler(), attributes);
    EXPECT_NE(refusal().find("the interrupt table is not as it left it"), std::string::npos)
        << refusal();
  }
  facts_.idt = GuestVirt(0xffffffffb0000000);
  EXPECT_NE(refusal().find("interrupt table cannot be read"), std::string::npos) << refusal();
}

TEST_P(Remains, NorAreThePageTables) {
  const unsigned home = home_of(header());
  guest_.put64(kPmd.raw() + 8 * home, guest_.pmd(home) ^ 0x4);

  EXPECT_NE(refusal().find("page tables"), std::string::npos) << refusal();
}

TEST_P(Remains, SlotsAreReadFromTheirFirstToTheirLastByte) {
  const auto found = find();
  ASSERT_TRUE(found && *found);
  const shim_header h = header();
  std::array<std::byte, 8> code{};
  EXPECT_EQ((*found)->read_slot(guest_.memory(), GuestVirt(h.base), code), 0u);
  EXPECT_EQ((*found)->read_slot(guest_.memory(), GuestVirt(h.data - 4), code), 4u);
  EXPECT_EQ((*found)->read_slot(guest_.memory(), GuestVirt(h.data), code), 0u);
  EXPECT_EQ((*found)->read_slot(guest_.memory(), GuestVirt(h.slots), code), 8u);
  EXPECT_EQ((*found)->read_slot(guest_.memory(), GuestVirt(h.slots - 1), code), 0u);
}

/// Writes a table of its own, as a hostile guest may.
class LeftTables : public Remains {
 protected:
  static constexpr std::uint64_t kPages = 0x10000, kBlock = 0x11000;  // from the first slot on
  static constexpr std::uint32_t kKey = 0x9000'3000;                  // of a page

  template <class Word>
  void put(std::uint64_t distance, std::uint64_t value) {
    const shim_header h = header();
    const auto word = static_cast<Word>(value);
    const std::uint64_t at = kLow.base.raw() + (h.slots - h.base) + distance;
    std::memcpy(guest_.ram().data() + at, &word, sizeof word);
  }
  void lead_to_pages(std::uint32_t key, std::uint64_t pages) {
    put<std::uint16_t>(2 * (key >> SHIM_TABLE_SHIFT), pages >> SHIM_BLOCK_SHIFT);
  }
  void lead_to_block(std::uint64_t block) {
    const std::uint32_t page = kKey >> SHIM_PAGE_SHIFT & (SHIM_PAGES_WORDS - 1);
    put<std::uint16_t>(kPages + 2 * page, block >> SHIM_BLOCK_SHIFT);
  }
  std::vector<ShimRemains::Entry> entries() { return (*find())->entries(guest_.memory()); }
};
INSTANTIATE_TEST_SUITE_P(One, LeftTables, testing::Values(false));

TEST_P(LeftTables, EntriesThatLeadOutsideAreLeftOut) {
  const shim_header h = header();
  lead_to_pages(kKey, kPages);
  lead_to_block(kBlock);
  put<std::uint32_t>(kBlock, 4);
  put<std::uint32_t>(kBlock + 4, 0x010u << 20 | 1);                    // to the second byte
  put<std::uint32_t>(kBlock + 8, 0x020u << 20 | (h.slots_bytes - 1));  // to the last one
  put<std::uint32_t>(kBlock + 12, 0x030u << 20 | h.slots_bytes);       // behind it
  put<std::uint32_t>(kBlock + 16, 0x040u << 20);                       // disabled

  const auto all = entries();

  const auto slot_of = [&](std::uint32_t key) -> std::optional<std::uint64_t> {
    for (const auto& entry : all) {
      if (entry.address.raw() == (0xffff'ffff'0000'0000 | key)) {
        return entry.slot ? entry.slot->raw() - h.slots : 0;
      }
    }
    return std::nullopt;
  };
  EXPECT_EQ(all.size(), 5u) << "with the tracer's own";
  EXPECT_EQ(slot_of(kKey + 0x10), 1u);
  EXPECT_EQ(slot_of(kKey + 0x20), h.slots_bytes - 1);
  EXPECT_EQ(slot_of(kKey + 0x40), 0u);
}

TEST_P(LeftTables, PartsThatLieOutsideAreLeftOut) {
  const std::uint64_t end = header().slots_bytes;
  put<std::uint32_t>(kBlock, 1);
  put<std::uint32_t>(kBlock + 4, 1);
  lead_to_block(kBlock);
  lead_to_pages(kKey & 0x7fff'ffff, kPages);
  EXPECT_EQ(entries().size(), 2u) << "not in the top 2 GiB";
  lead_to_pages(kKey, end - 512);
  EXPECT_EQ(entries().size(), 2u) << "half of it lies outside";
  lead_to_pages(kKey, kPages);
  EXPECT_EQ(entries().size(), 3u);
  lead_to_block(end);
  EXPECT_EQ(entries().size(), 2u);
  lead_to_block(kBlock);
  put<std::uint32_t>(kBlock, SHIM_PAGE + 1);
  EXPECT_EQ(entries().size(), 2u) << "more than a page has addresses";
  put<std::uint32_t>(kBlock, ~0u);
  EXPECT_EQ(entries().size(), 2u);
}

TEST_P(LeftTables, OfNonsenseHaveNoMoreEntriesThanTheyHaveRoomFor) {
  const shim_header h = header();
  std::mt19937 random(3);
  for (unsigned round = 0; round < 4; ++round) {
    // Each word leads somewhere, and all pages may share a block.
    for (std::uint64_t at = 0; at < h.slots_bytes; at += 4) {
      put<std::uint32_t>(at, round == 0 ? 0x0010'0010 : round == 1 ? 0xfff : random());
    }
    const auto all = entries();
    EXPECT_LE(all.size(), h.slots_bytes / 4);
    for (const auto& entry : all) {
      ASSERT_GE(entry.address, arch::kKernelImage);
      ASSERT_TRUE(!entry.slot || entry.slot->is_in(GuestVirt(h.slots), h.slots_bytes));
    }
  }
}

TEST_P(Remains, OfAMachineThatTheirTracerDoesNotTraceAreNobodys) {
  const auto in_use = [this](std::uint64_t machine) {
    shim_header changed = header();
    changed.machine = machine;
    put_header(changed);
    return (*find())->is_in_use_by(getpid());
  };

  EXPECT_TRUE(in_use(ProcessName::of_self().word()));
  EXPECT_TRUE(in_use(0)) << "it cannot be known";
  EXPECT_FALSE(in_use(ProcessName{1, 1}.word())) << "the guest was moved here from that one";
}

TEST_P(Remains, ThatSomebodyIsInsideOfServeTheNextTracer) {
  {
    auto machine = paused();
    const shim_header h = header();
    const std::uint64_t active = kLow.base.raw() + (h.data - h.base) + SHIM_CONTROL_ACTIVE;
    EXPECT_EQ(guest_.get64(active), 1u);
    ASSERT_TRUE((*find())->silence(machine) && (*find())->give_gate_back(machine));
    EXPECT_EQ(guest_.get64(active), 0u) << "traps resume at once";
  }
  const auto found = find();
  ASSERT_TRUE(found && *found);
  EXPECT_TRUE((*found)->is_retired());
  const shim_header old = header();
  const std::uint64_t slot = kLow.base.raw() + (slots_[1].raw() - old.base);
  auto machine = paused();

  const std::array inside = {slots_[1].wrapping_add(1)};
  auto shim = (*found)->take_over(machine, facts_, inside);

  ASSERT_TRUE(shim) << shim.error().message;
  EXPECT_EQ(guest_.gate_handler(), GuestVirt(old.base + old.entry));
  EXPECT_EQ(header().owner, static_cast<std::uint64_t>(getpid()));
  EXPECT_EQ(header().machine, 0u) << "no process runs this one";
  EXPECT_EQ(guest_.ram()[slot], std::byte{0x55}) << "where somebody is";
  EXPECT_TRUE((*found)->entries(guest_.memory()).empty());
  EXPECT_FALSE((*find())->is_retired());
  // Slots come behind the one that stays, and are as good as any.
  for (unsigned n = 0; n < 20; ++n) {
    const auto next = (*shim)->allocate_slot(10);
    ASSERT_TRUE(next);
    EXPECT_FALSE(next->is_in(inside[0].wrapping_sub(64 + 10), 128 + 10));
    EXPECT_TRUE((*shim)->add_entry(kText.wrapping_add(16 * n), *next));
    EXPECT_TRUE((*shim)->enable_entries(std::array{kText.wrapping_add(16 * n)}));
  }
  EXPECT_EQ((*shim)->counters().firings, 0u);
  ASSERT_TRUE((*shim)->retire(machine));
  EXPECT_TRUE((*find())->is_retired());
  ASSERT_TRUE((*shim)->remove(machine));
  EXPECT_TRUE(image_of(guest_) == clean_);
}

TEST_P(Remains, AreNotTakenOverWhereSomebodyIsInTheCode) {
  auto machine = paused();
  ASSERT_TRUE((*find())->give_gate_back(machine));
  const auto found = find();
  const auto before = image_of(guest_);
  const shim_header h = header();

  for (const std::uint64_t place : {h.base + h.entry, h.slots - 1, h.data}) {
    const std::array places = {slots_[0], GuestVirt(place)};
    EXPECT_FALSE((*found)->take_over(machine, facts_, places));
  }

  EXPECT_TRUE(image_of(guest_) == before);
}

TEST_P(Remains, TellWhichSlotsHoldCodeSoThatAllOfThemCanStay) {
  auto machine = paused();
  ASSERT_TRUE((*find())->give_gate_back(machine));

  const auto used = (*find())->used_slots(guest_.memory());

  EXPECT_LT(used.size(), 64u);
  for (const GuestVirt slot : slots_) {
    EXPECT_TRUE(std::ranges::any_of(used, [&](GuestVirt at) { return slot.is_in(at, 32); }));
  }
  const shim_header old = header();
  auto shim = (*find())->take_over(machine, facts_, used);
  ASSERT_TRUE(shim) << shim.error().message;
  for (const GuestVirt slot : slots_) {
    EXPECT_EQ(guest_.ram()[kLow.base.raw() + (slot.raw() - old.base)], std::byte{0x55});
    const GuestVirt next = *(*shim)->allocate_slot(10);
    EXPECT_TRUE(std::ranges::none_of(used, [&](GuestVirt at) { return next.is_in(at, 32); }));
  }
}

TEST_P(Remains, TellThePieceOfEachByteThatIsNotZero) {
  const shim_header h = header();
  const auto slots = guest_.ram().subspan(kLow.base.raw() + (h.slots - h.base), h.slots_bytes);
  std::ranges::fill(slots, std::byte{0});
  for (const std::size_t at : {std::size_t{31}, std::size_t{64}, slots.size() - 1}) {
    slots[at] = std::byte{0xc3};
  }

  const auto used = (*find())->used_slots(guest_.memory());

  EXPECT_EQ(used, (std::vector{GuestVirt(h.slots), GuestVirt(h.slots + 64),
                               GuestVirt(h.slots + h.slots_bytes - 32)}));
}

TEST_P(Remains, OnesThatLieFarApartLeaveRoomBetween) {
  const shim_header h = header();
  auto machine = paused();
  ASSERT_TRUE((*find())->give_gate_back(machine));
  const GuestVirt near(h.slots + ShimSlots::kTableBytes), far(near.wrapping_add(0x1000));

  auto shim = (*find())->take_over(machine, facts_, std::array{far, far, near});

  ASSERT_TRUE(shim) << shim.error().message;
  std::vector<GuestVirt> got;
  while (got.empty() || got.back() < far) got.push_back(*(*shim)->allocate_slot(100));
  EXPECT_EQ(got.front(), near.wrapping_add(64 + SlotHeader::kBytes));
  EXPECT_LE(got[got.size() - 2].raw() + 100, far.raw() - 64);
  EXPECT_EQ(got.back(), far.wrapping_add(64 + SlotHeader::kBytes));
}

TEST_P(Remains, SomebodyMayBeAtTheLastByteOfTheSlots) {
  const shim_header h = header();
  auto machine = paused();
  ASSERT_TRUE((*find())->give_gate_back(machine));

  auto shim = (*find())->take_over(machine, facts_, std::array{GuestVirt(h.data - 1)});

  ASSERT_TRUE(shim) << shim.error().message;
  const std::uint64_t before = h.slots_bytes - 65 - SHIM_TABLE_WORDS * 2;
  EXPECT_TRUE((*shim)->allocate_slot(before - SlotHeader::kBytes)) << "all that lies before it";
  EXPECT_FALSE((*shim)->allocate_slot(1));
}

TEST(ShimRemains, AreNoneInAGuestThatWasNeverTraced) {
  FakeGuest guest;

  const auto found = ShimRemains::find(guest.memory(), facts());

  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
}

TEST(ProcessName, TellsTheLivingFromTheDead) {
  ProcessName self = ProcessName::of_self();
  EXPECT_TRUE(self.is_alive());
  std::ifstream file("/proc/self/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int n = 3; n <= 22; ++n) fields >> field;
  EXPECT_EQ(std::to_string(self.start), field);
  EXPECT_EQ((ProcessName{5, 3}).word(), 5u | 3u << 22);
  EXPECT_EQ((ProcessName{5, 0}).word(), 0u);
  ++self.start;
  EXPECT_FALSE(self.is_alive()) << "a later process of that number";
  EXPECT_FALSE(ProcessName{}.is_alive());

  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const ProcessName name = ProcessName::of_self();
    _exit(write(ends[1], &name, sizeof name) == sizeof name ? 0 : 1);
  }
  ProcessName name;
  ASSERT_EQ(read(ends[0], &name, sizeof name), static_cast<ssize_t>(sizeof name));
  EXPECT_EQ(name.pid, static_cast<std::uint64_t>(child));
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(name.is_alive()) << "its parent has not asked for it yet";
  EXPECT_EQ(ProcessName::of(child).word(), 0u);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace ringside::vmm
