#include "dif/evaluate/variables.h"

#include <gtest/gtest.h>

#include "dif/testing/fake_guest.h"
#include "dif/testing/make_dif.h"

namespace ringside::dif {
namespace {

using namespace testing;

constexpr std::uint16_t kInt = 0x500, kText = 0x501, kArray = 0x502, kTexts = 0x503;

Program declaring() {
  Difo object = difo({encode_return(0)});
  const ValueType int16{ValueKind::Integer, true, 2};
  object.variables = {
      {kInt, VariableScope::Global, VariableKind::Scalar, int16, "i"},
      {kText, VariableScope::Global, VariableKind::Scalar, kString, "s"},
      {kArray, VariableScope::Global, VariableKind::Associative, kLong, "a"},
      {kTexts, VariableScope::Global, VariableKind::Associative, kString, "t"},
      {kInt, VariableScope::Thread, VariableKind::Scalar, kLong, "self_i"},
      {kText, VariableScope::Clause, VariableKind::Scalar, kString, "this_s"},
  };
  return program({clause({action(ActionKind::Evaluate, {object})})});
}

/// Two strings and 9 bytes in each scope.
Program declaring_storage() {
  Difo object = difo({encode_return(0)});
  for (const VariableScope scope : {VariableScope::Global, VariableScope::Clause}) {
    object.variables.push_back(
        {0x500, scope, VariableKind::Scalar, {ValueKind::Bytes, false, 9}, "b"});
    object.variables.push_back({0x501, scope, VariableKind::Scalar, kString, "s"});
    object.variables.push_back({0x502, scope, VariableKind::Scalar, kString, "t"});
  }
  return program({clause({action(ActionKind::Evaluate, {object})})});
}

class VariablesTest : public ::testing::Test {
 protected:
  void SetUp() override { memory_.begin_firing(guest_.kernel(), guest_.user()); }
  std::uint64_t scratch(std::string_view s) { return memory_.new_string(s).value(); }
  std::string text(std::uint64_t at) { return std::string(memory_.string(at, 256).value()); }
  static TupleValue number(std::uint64_t n) { return {n, 0, ValueKind::Integer}; }
  TupleValue string_key(std::string_view s) { return {scratch(s), 0, ValueKind::String}; }
  std::uint64_t element(std::uint16_t id, std::vector<TupleValue> tuple) {
    return variables_.load_dynamic(VariableScope::Global, id, {}, tuple).value();
  }
  void set_element(std::uint16_t id, std::vector<TupleValue> tuple, std::uint64_t value) {
    ASSERT_TRUE(variables_.store_dynamic(VariableScope::Global, id, {}, tuple, value));
  }

  FakeGuest guest_;
  EngineOptions options_{.dynamic_size = 8192};
  Memory memory_{options_};
  const Program program_ = declaring();
  SharedLocks locks_{1};
  SharedAccess access_{locks_};
  SharedVariables shared_{program_, options_, 1};
  Variables variables_{program_, options_, shared_, access_, memory_, 0};
};

TEST_F(VariablesTest, AnIntegerIsZeroBeforeItIsStored) {
  EXPECT_EQ(variables_.load(VariableScope::Global, kInt), 0u);
}

TEST_F(VariablesTest, IntegersKeepAllBitsWhateverTheirSize) {
  ASSERT_TRUE(variables_.store(VariableScope::Global, kInt, 0x1'ffff));
  EXPECT_EQ(variables_.load(VariableScope::Global, kInt), 0x1'ffffu);
}

TEST_F(VariablesTest, StringsAreKeptByValue) {
  EXPECT_EQ(text(variables_.load(VariableScope::Global, kText)), "") << "never stored";
  const std::uint64_t source = scratch("first");
  ASSERT_TRUE(variables_.store(VariableScope::Global, kText, source));

  memory_.writable(source, 1).value()[0] = std::byte{'X'};

  EXPECT_EQ(text(variables_.load(VariableScope::Global, kText)), "first");
  ASSERT_TRUE(variables_.store(VariableScope::Global, kText, 0));
  EXPECT_EQ(variables_.load(VariableScope::Global, kText), 0u) << "null";
  EXPECT_EQ(text(variables_.load(VariableScope::Clause, kText)), "") << "scopes are separate";
}

TEST_F(VariablesTest, StringsHoldStrsizeCharacters) {
  const std::string longest(options_.string_size, 'x');
  const std::uint64_t source = scratch(longest + "y");
  ASSERT_TRUE(variables_.store(VariableScope::Global, kText, source));
  ASSERT_TRUE(variables_.store(VariableScope::Clause, kText, source));
  set_element(kTexts, {number(1)}, source);

  EXPECT_EQ(text(variables_.load(VariableScope::Global, kText)), longest);
  EXPECT_EQ(text(variables_.load(VariableScope::Clause, kText)), longest);
  EXPECT_EQ(text(element(kTexts, {number(1)})), longest);
}

TEST(Variables, EachHasAPlaceOfItsOwnWhichIsAligned) {
  const Program source = declaring_storage();
  const EngineOptions options;
  Memory memory(options);
  SharedLocks locks(1);
  SharedAccess access(locks);
  SharedVariables shared(source, options, 1);
  Variables variables(source, options, shared, access, memory, 0);
  const FakeGuest guest;
  memory.begin_firing(guest.kernel(), guest.user());
  const std::uint64_t first = *memory.new_string("first"), second = *memory.new_string("second"),
                      bytes = *memory.new_string("12345678");
  for (const VariableScope scope : {VariableScope::Global, VariableScope::Clause}) {
    ASSERT_TRUE(variables.store(scope, 0x500, bytes));
    ASSERT_TRUE(variables.store(scope, 0x501, first));
    ASSERT_TRUE(variables.store(scope, 0x502, second));

    EXPECT_EQ(memory.string(variables.load(scope, 0x500), 256), "12345678");
    EXPECT_EQ(memory.string(variables.load(scope, 0x501), 256), "first");
    EXPECT_EQ(memory.string(variables.load(scope, 0x502), 256), "second");
    EXPECT_EQ(variables.load(scope, 0x501) % 8, 0u);
    const std::uint64_t last = variables.load(scope, 0x502);
    EXPECT_TRUE(memory.writable(last, options.string_size));
    EXPECT_FALSE(memory.writable(last, options.string_size + 1)) << "nothing lies behind them";
  }
}

TEST(Variables, AnIntegerThatOnlyBeginStoresIsSettledWhereNobodyElseRunsMeanwhile) {
  const Program source = declaring();
  const EngineOptions options{.dynamic_size = 8192};
  SharedVariables one(source, options, 1);
  EXPECT_TRUE(one.is_settled(kInt));
  EXPECT_FALSE(one.is_settled(kText));
  one.unsettle(kInt);
  EXPECT_FALSE(one.is_settled(kInt));

  const SharedVariables of_two(std::array{&source, &source}, options, 2);
  EXPECT_FALSE(of_two.is_settled(kInt));
}

TEST_F(VariablesTest, StringsOfTheGuestsAreKeptHoweverManyThereWere) {
  constexpr std::uint64_t kGuestText = 0xffff'8880'0000'1000;
  guest_.kernel_memory.put_text(kGuestText, std::string(200, 'x'));

  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(variables_.store(VariableScope::Global, kText, kGuestText));
  }

  EXPECT_EQ(text(variables_.load(VariableScope::Global, kText)).size(), 200u);
}

TEST_F(VariablesTest, AStringThatCannotBeReadIsAFault) {
  const auto done = variables_.store(VariableScope::Global, kText, 0xffff'8880'0000'0000);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, FaultKind::BadAddress);
}

TEST_F(VariablesTest, ThreadVariablesBelongToTheirOwner) {
  const auto load = [&](Owner owner) {
    return variables_.load_dynamic(VariableScope::Thread, kInt, owner, {}).value();
  };
  ASSERT_TRUE(variables_.store_dynamic(VariableScope::Thread, kInt, {1, 0}, {}, 11));
  ASSERT_TRUE(variables_.store_dynamic(VariableScope::Thread, kInt, {2, 0}, {}, 22));

  EXPECT_EQ(load({1, 0}), 11u);
  EXPECT_EQ(load({2, 0}), 22u);
  EXPECT_EQ(load({3, 0}), 0u);
  EXPECT_EQ(load({1, 5}), 0u) << "a later thread of that number";
}

TEST_F(VariablesTest, AThreadsVariablesAreLockedByPartsOfTheTable) {
  SharedLocks locks(2);
  SharedAccess access(locks);
  SharedVariables shared(program_, options_, 2);
  Variables variables(program_, options_, shared, access, memory_, 0);
  access.begin(false);
  ASSERT_TRUE(variables.store_dynamic(VariableScope::Thread, kInt, {1, 0}, {}, 11));
  EXPECT_FALSE(access.owns_program());

  access.take_program();

  EXPECT_EQ(access.gaps(), 1u) << "the thread's part was held";
  access.end();
}

TEST_F(VariablesTest, TuplesOfDifferentShapeAreDifferentKeys) {
  set_element(kArray, {number(1), number(2)}, 12);
  set_element(kArray, {number(1)}, 1);
  set_element(kArray, {string_key("ab"), string_key("c")}, 3);
  set_element(kArray, {string_key("a"), string_key("bc")}, 4);

  EXPECT_EQ(element(kArray, {number(1), number(2)}), 12u);
  EXPECT_EQ(element(kArray, {number(1)}), 1u);
  EXPECT_EQ(element(kArray, {number(2)}), 0u);
  EXPECT_EQ(element(kArray, {string_key("ab"), string_key("c")}), 3u);
  EXPECT_EQ(element(kArray, {string_key("a"), string_key("bc")}), 4u);
  EXPECT_EQ(element(kTexts, {number(1)}), 0u) << "another array";
}

TEST_F(VariablesTest, BytesAreKeysByWhatTheyHold) {
  const auto key = [this](std::string_view bytes) {
    return TupleValue{scratch(bytes), bytes.size(), ValueKind::Bytes};
  };
  set_element(kArray, {key("abc")}, 1);
  set_element(kArray, {key("abd")}, 2);
  set_element(kArray, {key("ab")}, 3);

  EXPECT_EQ(element(kArray, {key("abc")}), 1u);
  EXPECT_EQ(element(kArray, {key("abd")}), 2u);
  EXPECT_EQ(element(kArray, {key("ab")}), 3u);
  EXPECT_EQ(element(kArray, {key("a"), key("b")}), 0u);
}

TEST_F(VariablesTest, StringElementsAreKeptByValue) {
  set_element(kTexts, {number(7)}, scratch("seven"));
  EXPECT_EQ(text(element(kTexts, {number(7)})), "seven");
  EXPECT_EQ(element(kTexts, {number(8)}), 0u);
}

TEST_F(VariablesTest, NoRoomIsADropAndZeroMakesRoom) {
  std::uint64_t stored = 0;
  while (variables_.take_dynamic_drops().plain == 0) set_element(kArray, {number(stored++)}, 1);
  --stored;  // the last one was dropped
  EXPECT_GT(stored, 50u);
  EXPECT_EQ(element(kArray, {number(stored)}), 0u);

  set_element(kArray, {number(0)}, 0);
  set_element(kArray, {number(stored)}, 1);
  EXPECT_EQ(variables_.take_dynamic_drops().dirty, 1u) << "element 0 has not been cleaned";
  shared_.clean(0);
  set_element(kArray, {number(stored)}, 1);
  EXPECT_EQ(variables_.take_dynamic_drops().rinsing, 1u);
  shared_.clean(0);
  set_element(kArray, {number(stored)}, 1);

  const auto drops = variables_.take_dynamic_drops();
  EXPECT_EQ(drops.plain + drops.dirty + drops.rinsing, 0u);
  EXPECT_EQ(element(kArray, {number(0)}), 0u);
  EXPECT_EQ(element(kArray, {number(stored)}), 1u);
}

TEST_F(VariablesTest, AStringThatFaultsLeavesNoElement) {
  const std::vector<TupleValue> key{number(1)};
  EXPECT_FALSE(
      variables_.store_dynamic(VariableScope::Global, kTexts, {}, key, 0xffff'8880'0000'0000));
  EXPECT_EQ(element(kTexts, key), 0u);
}

TEST_F(VariablesTest, OversizedKeysAreRefused) {
  const auto with = [this](std::uint64_t size) {
    const std::vector<TupleValue> key(kTupleSlots,
                                      {*memory_.allocate(5000), size, ValueKind::Bytes});
    return variables_.load_dynamic(VariableScope::Global, kArray, {}, key);
  };
  EXPECT_EQ(with(kLongestBytesKey), 0u) << "as many as a tuple has";
  EXPECT_EQ(with(kLongestBytesKey + 1).error().kind, FaultKind::NoScratch);
}

TEST_F(VariablesTest, OnlyAnElementThatWasLoadedMayBeWrittenInPlace) {
  set_element(kTexts, {number(1)}, scratch("one"));
  memory_.begin_firing(guest_.kernel(), guest_.user());
  const std::uint64_t guessed = make_handle(Arena::Dynamic, 64);
  EXPECT_FALSE(memory_.writable(guessed, 1)) << "the table itself lies there";

  const std::uint64_t at = element(kTexts, {number(1)});

  EXPECT_TRUE(memory_.writable(at, 256));
  EXPECT_TRUE(memory_.writable(at + 255, 1));
  EXPECT_FALSE(memory_.writable(at + 255, 2));
  EXPECT_FALSE(memory_.writable(at - 1, 1));
  memory_.begin_firing(guest_.kernel(), guest_.user());
  EXPECT_FALSE(memory_.writable(at, 1)) << "in another firing it may be another element's";
}

TEST_F(VariablesTest, TheLastSixteenElementsThatWereLoadedMayBeWritten) {
  std::vector<std::uint64_t> places;
  for (std::uint64_t n = 0; n < 17; ++n) set_element(kTexts, {number(n)}, scratch("x"));
  for (std::uint64_t n = 0; n < 16; ++n) places.push_back(element(kTexts, {number(n)}));
  for (const std::uint64_t at : places) EXPECT_TRUE(memory_.writable(at, 1));

  places.push_back(element(kTexts, {number(16)}));

  for (std::size_t n = 0; n < places.size(); ++n) {
    EXPECT_EQ(memory_.writable(places[n], 1).has_value(), n != 0) << n;
  }
}

}  // namespace
}  // namespace ringside::dif
