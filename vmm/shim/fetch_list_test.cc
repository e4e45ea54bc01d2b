#include "vmm/shim/fetch_list.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "vmm/base/bytes.h"

namespace ringside::vmm {
namespace {

constexpr FetchLoad kInode{
    .source = FetchLoad::register_source(SHIM_RDI), .words = 1, .is_users = false, .offset = 0x20};

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto more = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), more.begin(), more.end());
}

TEST(FetchList, FindsALoadThatItHas) {
  FetchList list;
  FetchLoad users = kInode;
  users.is_users = true;

  EXPECT_EQ(list.add(kInode), 0u);
  EXPECT_EQ(list.add(users), 1u);
  EXPECT_EQ(list.add(kInode), 0u);
  EXPECT_EQ(list.loads().size(), 2u);
}

TEST(FetchList, ALaterLoadMayBeginAtTheFirstWordOfAnEarlierOne) {
  FetchList list;
  list.add({.source = FetchLoad::kTask, .words = 3});
  list.add(kInode);

  EXPECT_EQ(FetchLoad::kTask, 32 / 8);
  EXPECT_EQ(list.source_of(0), (224 + 16) / 8);
  EXPECT_EQ(list.source_of(1), (224 + 16 + 24 + 16) / 8);
  EXPECT_EQ(list.record_bytes(), 224u + 16 + 24 + 16 + 8);
}

TEST(FetchList, WithoutRegistersRunsTakeTheirPlace) {
  FetchList list({.registers = false, .ids = true});
  EXPECT_FALSE(list.is_default());
  EXPECT_FALSE(list.copies_memory());
  list.add({.source = FetchLoad::kTask, .words = 3});

  EXPECT_TRUE(list.copies_memory());
  EXPECT_EQ(list.source_of(0), (72 + 16) / 8);
  EXPECT_EQ(list.record_bytes(), 72u + 16 + 24);
  EXPECT_EQ(list.head().copies, SHIM_COPY_IDS | SHIM_COPY_RUNS);
  EXPECT_EQ(list.head().runs, 72);
  EXPECT_EQ(FetchList({.registers = false, .ids = false}).head().copies, 0);
  EXPECT_EQ(FetchList().head().copies, SHIM_COPY_IDS | SHIM_COPY_REGISTERS | SHIM_COPY_PERCPU);
  FetchList clock({.registers = false, .ids = false});
  clock.add({.source = FetchLoad::kPerCpuBase, .words = 1});
  EXPECT_EQ(clock.head().copies, SHIM_COPY_PERCPU | SHIM_COPY_RUNS);
}

TEST(FetchList, ChecksOfTheTaskStandBeforeAllElse) {
  FetchList list;
  ASSERT_TRUE(list.add_check(FetchCheck{.source = 40}));
  ASSERT_TRUE(list.add_check(TaskCheck{.offset = 0x718, .mask = 0xff, .with = 9}));
  ASSERT_TRUE(list.add_check(TaskCheck{.offset = 0x720, .is_negated = true, .with = 8}));
  const auto bytes = list.encode();

  ASSERT_EQ(bytes.size(), sizeof(shim_list) + 3 * sizeof(shim_check) + sizeof(shim_load));
  const auto head = load_at<shim_list>(bytes, 0);
  EXPECT_EQ(head.task_checks, 2);
  EXPECT_EQ(head.copies & SHIM_COPY_RUNS, SHIM_COPY_RUNS) << "a check is an entry";
  EXPECT_EQ(head.entries, sizeof(shim_list) + 2 * sizeof(shim_check));
  const auto first = load_at<shim_check>(bytes, sizeof head);
  const auto second = load_at<shim_check>(bytes, sizeof head + sizeof first);
  EXPECT_EQ(first.source, 0x718);
  EXPECT_EQ(first.words, 0);
  EXPECT_EQ(first.mask, 0xffu);
  EXPECT_EQ(first.with, 9u);
  EXPECT_EQ(second.words, SHIM_CHECK_NEGATED);
  EXPECT_EQ(load_at<shim_check>(bytes, head.entries).source, 40);
  EXPECT_TRUE(list.drop_checks());
  EXPECT_TRUE(list.is_default());
}

TEST(FetchList, HasNoMoreLoadsThanHoldUpAGuestCpuForLong) {
  FetchList list;
  for (std::size_t n = 0; n < FetchList::kMostLoads; ++n) {
    ASSERT_TRUE(list.add({.words = 1, .offset = static_cast<std::int32_t>(8 * n)})) << n;
  }
  EXPECT_FALSE(list.add({.words = 1, .offset = -8}));
  EXPECT_EQ(list.add({.words = 1, .offset = 8}), 1u) << "it has that one";
}

TEST(FetchList, ACheckStandsBehindTheLoadsThatWereThere) {
  FetchList list;
  EXPECT_TRUE(list.is_default());
  ASSERT_TRUE(list.add_check(FetchCheck{.source = 40, .is_negated = true, .with = 7}));
  EXPECT_FALSE(list.is_default()) << "it tells the guest something";
  EXPECT_EQ(list.record_bytes(), std::size_t{SHIM_RECORD_RUNS});
  list.add(kInode);
  list.add_check(FetchCheck{.source = 34,
                            .left = 32,
                            .right = 40,
                            .is_signed = true,
                            .relation = FetchCheck::Relation::Less,
                            .mask = 0xff,
                            .with = 9});
  list.add_stack();
  const auto bytes = list.encode();

  ASSERT_EQ(bytes.size(), sizeof(shim_list) + 2 * sizeof(shim_check) + 3 * sizeof(shim_load));
  std::array<shim_check, 2> checks;
  shim_load load;
  const auto entries = std::span(bytes).subspan(sizeof(shim_list));
  std::memcpy(&checks[0], entries.data(), sizeof checks[0]);
  std::memcpy(&load, &entries[sizeof checks[0]], sizeof load);
  std::memcpy(&checks[1], &entries[sizeof checks[0] + sizeof load], sizeof checks[1]);
  EXPECT_EQ(checks[0].source, 40);
  EXPECT_EQ(checks[0].words, SHIM_LOAD_CHECK | SHIM_CHECK_NEGATED);
  EXPECT_EQ(checks[0].left, 0);
  EXPECT_EQ(checks[0].right, 0);
  EXPECT_EQ(checks[0].mask, UINT64_MAX);
  EXPECT_EQ(checks[0].with, 7u);
  EXPECT_EQ(load.offset, kInode.offset);
  EXPECT_EQ(checks[1].source, 34);
  EXPECT_EQ(checks[1].words, SHIM_LOAD_CHECK | SHIM_CHECK_SIGNED | SHIM_CHECK_LESS);
  EXPECT_EQ(checks[1].left, 32);
  EXPECT_EQ(checks[1].right, 40);
  EXPECT_EQ(checks[1].mask, 0xffu);
  EXPECT_EQ(checks[1].with, 9u);
}

TEST(FetchList, ThatWaitsOnlyForSomeValuesMayGetMore) {
  FetchList list, other;
  const std::vector<GuestVirt> values{GuestVirt(0xffff'8880'0000'1000)};
  list.wait_only_for(40, values);
  const auto before = list.encode();

  EXPECT_TRUE(list.waits_only_for_some());
  EXPECT_FALSE(other.waits_only_for_some());
  EXPECT_TRUE(list.add_waited_for(GuestVirt(0xffff'8880'0000'2000)));

  EXPECT_EQ(list.checks()[0].check.with, values[0].raw());
  EXPECT_EQ(list.checks()[1].check.with, 0xffff'8880'0000'2000U);
  EXPECT_TRUE(list.checks()[1].check.lets_wait);
  EXPECT_FALSE(list.checks().back().check.lets_wait) << "leaves all others out";
  EXPECT_EQ(list.encode().size(), before.size()) << "it is changed in place";
  unsigned more = 0;
  while (list.add_waited_for(GuestVirt(0xffff'8880'0000'3000))) ++more;
  EXPECT_EQ(more, 3u);
}

TEST(FetchList, ThatWaitsForAsManyValuesAsFitHasNoRoomForMore) {
  FetchList list;
  list.wait_only_for(40, std::vector<GuestVirt>(FetchList::kMostChecks - 1, GuestVirt(8)));

  EXPECT_EQ(list.checks().size(), FetchList::kMostChecks);
  EXPECT_FALSE(list.add_waited_for(GuestVirt(16)));
}

TEST(FetchList, HasOnlySoManyChecks) {
  FetchList list;
  for (std::size_t n = 0; n < FetchList::kMostChecks; ++n)
    EXPECT_TRUE(list.add_check(FetchCheck{}));
  EXPECT_TRUE(list.drop_checks());
  EXPECT_TRUE(list.is_default());
  EXPECT_FALSE(list.drop_checks());
  for (std::size_t n = 0; n < FetchList::kMostChecks; ++n) list.add_check(FetchCheck{});
  EXPECT_FALSE(list.add_check(FetchCheck{.relation = FetchCheck::Relation::LessUnsigned}));
}

TEST(FetchList, KeepsTheBoundsOfItsLoads) {
  FetchList list;
  list.add({.words = 1});
  list.add_check(FetchCheck{.source = 3, .with = 1, .lets_wait = true});
  list.add_check(FetchCheck{.source = 3, .with = 1});
  const auto bytes = list.encode();
  const std::size_t first = sizeof(shim_list) + sizeof(shim_load);
  EXPECT_EQ(load_at<shim_check>(bytes, first).words, SHIM_LOAD_CHECK | SHIM_CHECK_WAITS);
  EXPECT_EQ(load_at<shim_check>(bytes, first + sizeof(shim_check)).words, SHIM_LOAD_CHECK);
  EXPECT_TRUE(list.drop_checks());
  ASSERT_EQ(list.checks().size(), 1u);
  EXPECT_TRUE(list.checks()[0].check.lets_wait);
  EXPECT_FALSE(list.drop_checks());
}

TEST(FetchList, HasNoMoreWordsThanFitIntoARecord) {
  FetchList list;
  EXPECT_FALSE(list.add({.words = 0}));
  EXPECT_FALSE(list.add({.words = FetchLoad::kMostWords + 1}));
  const std::uint16_t all = (FetchList::kMostRecordBytes - SHIM_RECORD_RUNS - 16) / 8;
  EXPECT_FALSE(list.add({.words = all + 1}));
  EXPECT_TRUE(list.add({.words = all}));
  EXPECT_EQ(list.record_bytes(), FetchList::kMostRecordBytes);
  EXPECT_FALSE(list.add({.words = 1, .offset = 8}));
}

TEST(FetchList, IsForTheGuestUpToAnEntryWithoutWords) {
  FetchList list;
  list.add(kInode);
  list.add({.source = 34, .words = 5, .is_users = true, .offset = -16});
  const auto bytes = list.encode();

  std::array<shim_load, 3> loads;
  ASSERT_EQ(bytes.size(), sizeof(shim_list) + sizeof loads);
  std::memcpy(loads.data(), &bytes[sizeof(shim_list)], sizeof loads);
  EXPECT_EQ(loads[0].source, 96 / 8 + SHIM_RDI);
  EXPECT_EQ(loads[0].words, 1);
  EXPECT_EQ(loads[0].offset, 0x20);
  EXPECT_EQ(loads[1].source, 34);
  EXPECT_EQ(loads[1].words, 5 | SHIM_LOAD_USER);
  EXPECT_EQ(loads[1].offset, -16);
  EXPECT_EQ(loads[2].words, 0);
}

TEST(FetchList, AnIndexStandsBehindItsLoad) {
  FetchList list;
  list.add(kInode);
  FetchLoad indexed = kInode;
  indexed.index = FetchLoad::Index{30, 16, 48};
  list.add(indexed);
  list.add({.source = 34, .words = 5});
  const auto bytes = list.encode();

  ASSERT_EQ(list.loads().size(), 3u) << "it is another address";
  ASSERT_EQ(bytes.size(), sizeof(shim_list) + 4 * sizeof(shim_load) + sizeof(shim_index));
  const auto entry = [&bytes](std::size_t n) {
    return load_at<shim_load>(bytes, sizeof(shim_list) + n * sizeof(shim_load));
  };
  EXPECT_EQ(entry(1).words, 1 | SHIM_LOAD_INDEXED);
  const auto index = load_at<shim_index>(bytes, sizeof(shim_list) + 2 * sizeof(shim_load));
  EXPECT_EQ(index.source, 30);
  EXPECT_EQ(index.left, 16);
  EXPECT_EQ(index.right, 48);
  EXPECT_EQ(entry(3).words, 5);
  EXPECT_EQ(entry(4).words, 0);
}

TEST(FetchList, AStackHasAllTheRoomThatIsLeft) {
  FetchList list;
  EXPECT_TRUE(list.is_default());
  list.add_stack();
  EXPECT_FALSE(list.is_default());
  list.add({.words = 1, .offset = 8});
  EXPECT_EQ(list.record_bytes(), 224u + 16 + 8 + 16);
  list.fit(1024);

  EXPECT_EQ(list.record_bytes(), 1024u);
  EXPECT_EQ(list.stack_words(), (1024u - 224 - 16 - 8 - 16) / 8);
  const auto bytes = list.encode();
  std::array<shim_load, 3> loads;
  ASSERT_EQ(bytes.size(), sizeof(shim_list) + sizeof loads);
  std::memcpy(loads.data(), &bytes[sizeof(shim_list)], sizeof loads);
  EXPECT_EQ(loads[0].offset, 8) << "the stack is the last one";
  EXPECT_EQ(loads[1].words, list.stack_words() | SHIM_LOAD_STACK);
  EXPECT_EQ(loads[2].words, 0);
  list.fit(64);
  EXPECT_EQ(list.stack_words(), 0u);
  FetchList other;
  other.add({.words = 1, .offset = 8});
  other.fit(1024);
  EXPECT_EQ(other.stack_words(), 0u);
}

TEST(FetchFacts, AreWhatAWalkNeeds) {
  FetchFacts facts{.kernel_table = {GuestPhys(0x3000), 5, std::uint64_t{1} << 47},
                   .direct_map = GuestVirt(0xff11000000000000),
                   .ram = {{GuestPhys(0), 0xa0000}, {GuestPhys(0x100000), 0x700000}},
                   .task_stack = 0x20,
                   .stack_bytes = 0x4000};
  const auto fetch = facts.encode();

  ASSERT_TRUE(fetch);
  EXPECT_EQ(fetch->root, 0x3000u);
  EXPECT_EQ(fetch->direct_map, 0xff11000000000000u);
  EXPECT_EQ(fetch->frames, 0x000f7ffffffff000u) << "without the bit that says encrypted";
  EXPECT_EQ(fetch->top_shift, 48u);
  ASSERT_EQ(fetch->ram_count, 2u);
  EXPECT_EQ(fetch->ram[1].begin, 0x100000u);
  EXPECT_EQ(fetch->ram[1].end, 0x800000u);
  EXPECT_EQ(fetch->task_stack, 0x20u);
  EXPECT_EQ(fetch->stack_bytes, 0x4000u);
  facts.kernel_table.levels = 4;
  EXPECT_EQ(facts.encode()->top_shift, 39u);
  facts.ram.resize(SHIM_RAM_RANGES);
  EXPECT_TRUE(facts.encode());
  facts.ram.resize(SHIM_RAM_RANGES + 1);
  EXPECT_FALSE(facts.encode());
  facts.ram.clear();
  EXPECT_FALSE(facts.encode());
}

class Runs : public testing::Test {
 protected:
  Runs() {
    list_.add({.words = 2});
    list_.add({.words = 3, .offset = 8});
  }
  void begin() { runs_.begin(list_, bytes_); }
  void add(std::uint64_t address, std::uint64_t end, std::size_t words) {
    append(bytes_, shim_run{address, end});
    for (std::size_t n = 0; n < words; ++n) append(bytes_, address + 8 * n);
  }
  std::size_t left_from(std::uint64_t at) const { return runs_.from(GuestVirt(at)).size(); }

  FetchList list_;
  std::vector<std::byte> bytes_;
  RecordedRuns runs_;
};

TEST_F(Runs, HaveTheBytesThatWereCopied) {
  add(0x1000, 0x1010, 2);
  add(0x5000, 0x5018, 3);
  begin();

  EXPECT_EQ(left_from(0x1000), 16u);
  EXPECT_EQ(left_from(0x100f), 1u);
  EXPECT_EQ(left_from(0x1010), 0u);
  EXPECT_EQ(left_from(0xfff), 0u);
  EXPECT_EQ(left_from(0x5008), 16u);
  std::uint64_t word = 0;
  std::memcpy(&word, runs_.from(GuestVirt(0x5010)).data(), sizeof word);
  EXPECT_EQ(word, 0x5010u);
  runs_.clear();
  EXPECT_EQ(left_from(0x1000), 0u);
}

TEST_F(Runs, EndWithTheStackWhichMayBeShorterThanItsRoom) {
  list_.add_stack();
  list_.fit(list_.record_bytes() + 64);
  add(0x1000, 0x1010, 2);
  add(0x5000, 0x5018, 3);
  add(0x9000, 0x9018, 8);
  begin();
  EXPECT_EQ(left_from(0x9008), 16u);
  EXPECT_EQ(left_from(0x5008), 16u);
}

TEST_F(Runs, GiveTheLongestOfThoseThatOverlap) {
  add(0x1008, 0x1010, 2);
  add(0x1000, 0x1018, 3);
  begin();
  EXPECT_EQ(left_from(0x1008), 16u);
}

TEST_F(Runs, AreShorterWhereThePageCouldNotBeRead) {
  add(0x1ff8, 0x2000, 2);
  add(0x3000, 0x3000, 3);
  begin();
  EXPECT_EQ(left_from(0x1ff8), 8u);
  EXPECT_EQ(left_from(0x2000), 0u);
  EXPECT_EQ(left_from(0x3000), 0u);
}

TEST_F(Runs, ThatCannotBeOnesAreEmpty) {
  add(0x1000, 0x1018, 2);  // longer than its room
  add(0x5004, 0x500c, 3);
  begin();
  EXPECT_EQ(left_from(0x1000), 0u);
  EXPECT_EQ(left_from(0x5008), 0u);
  bytes_.clear();
  add(0x1000, 0xff8, 2);  // backwards
  add(0x5000, 0x5004, 3);
  begin();
  EXPECT_EQ(left_from(0x1000), 0u);
  EXPECT_EQ(left_from(0x5000), 0u);
}

TEST_F(Runs, EndWithTheBytesThatAreThere) {
  add(0x1000, 0x1010, 2);
  add(0x5000, 0x5018, 2);
  begin();
  EXPECT_EQ(left_from(0x1000), 16u);
  EXPECT_EQ(left_from(0x5000), 0u);
}

TEST_F(Runs, AtTheTopOfAllAddressesEndThere) {
  add(0xfffffffffffffff0, 0, 2);
  begin();
  EXPECT_EQ(left_from(0xfffffffffffffff8), 8u);
  EXPECT_EQ(left_from(0), 0u);
}

TEST_F(Runs, NoRandomBytesLeadOutOfThem) {
  std::minstd_rand random(1);
  for (unsigned round = 0; round < 20'000; ++round) {
    bytes_.assign(random() % 100, std::byte{0});
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random() % 4);
    begin();
    for (std::uint64_t at = 0; at < 8; ++at) {
      const auto found = runs_.from(GuestVirt(at * 0x0101010101010101));
      if (found.empty()) continue;
      EXPECT_GE(found.data(), bytes_.data());
      EXPECT_LE(found.data() + found.size(), bytes_.data() + bytes_.size());
    }
  }
}

}  // namespace
}  // namespace ringside::vmm
