#include "vmm/base/c_type.h"

#include <gtest/gtest.h>

#include <array>

namespace ringside {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) bytes[i] = static_cast<std::byte>(text[i]);
  return bytes;
}

TEST(TypeGraph, StartsWithVoidAsIdZero) {
  const TypeGraph graph;

  EXPECT_EQ(graph[TypeId{0}].kind, TypeKind::Void);
  EXPECT_EQ(graph.find("void"), TypeId{0});
  EXPECT_EQ(graph.size_of(TypeId{0}), 0u);
}

TEST(TypeGraph, KnowsLp64Sizes) {
  const TypeGraph graph;
  const std::array<std::pair<const char*, std::uint64_t>, 14> sizes = {{{"char", 1},
                                                                        {"short", 2},
                                                                        {"int", 4},
                                                                        {"long", 8},
                                                                        {"long long", 8},
                                                                        {"float", 4},
                                                                        {"double", 8},
                                                                        {"long double", 16},
                                                                        {"_Bool", 1},
                                                                        {"int8_t", 1},
                                                                        {"uint16_t", 2},
                                                                        {"pid_t", 4},
                                                                        {"uintptr_t", 8},
                                                                        {"u_longlong_t", 8}}};

  for (const auto& [name, size] : sizes) {
    const auto id = graph.find(name);
    ASSERT_TRUE(id) << name;
    EXPECT_EQ(graph.size_of(*id), size) << name;
  }
}

TEST(TypeGraph, FindsAnIntegerUnderEveryCSpelling) {
  const TypeGraph graph;

  EXPECT_EQ(graph.find("unsigned"), graph.find("unsigned int"));
  EXPECT_EQ(graph.find("long unsigned int"), graph.find("unsigned long"));
  EXPECT_EQ(graph.find("long long unsigned int"), graph.find("unsigned long long"));
  EXPECT_EQ(graph.find("short unsigned int"), graph.find("unsigned short"));
  EXPECT_EQ(graph.find("long int"), graph.find("long"));
  EXPECT_EQ(graph.find("int signed"), graph.find("int"));
  EXPECT_NE(graph.find("char"), graph.find("signed char"));
  EXPECT_EQ(graph.to_string(*graph.find("long unsigned int")), "unsigned long");
}

TEST(TypeGraph, PlainCharIsSignedAndACharacter) {
  const TypeGraph graph;

  const Type& plain = graph[*graph.find("char")];
  const Type& byte = graph[graph.resolve(*graph.find("uchar_t"))];

  EXPECT_TRUE(plain.is_signed && plain.is_char);
  EXPECT_TRUE(!byte.is_signed && byte.is_char);
  EXPECT_FALSE(graph[*graph.find("short")].is_char);
}

TEST(TypeGraph, StringIsAKindOfItsOwn) {
  const TypeGraph graph;

  EXPECT_EQ(graph[*graph.find("string")].kind, TypeKind::String);
}

TEST(TypeGraph, ResolveStripsTypedefsAndQualifiers) {
  TypeGraph graph;
  const TypeId constant = graph.add({.kind = TypeKind::Const, .target = *graph.find("size_t")});
  const TypeId both = graph.add({.kind = TypeKind::Volatile, .target = constant});

  EXPECT_EQ(graph.resolve(both), graph.find("unsigned long"));
}

TEST(TypeGraph, ACycleOfTypedefsResolvesToVoid) {
  TypeGraph graph;
  const TypeId a = graph.add({.kind = TypeKind::Typedef, .name = "a"});
  const TypeId b = graph.add({.kind = TypeKind::Typedef, .name = "b", .target = a});
  graph.replace(a, {.kind = TypeKind::Typedef, .name = "a", .target = b});

  EXPECT_EQ(graph.resolve(a), TypeId{0});
  EXPECT_EQ(graph.size_of(b), 0u);
  EXPECT_EQ(graph.to_string(a), "a");
}

TEST(TypeGraph, ACycleOfPointersOrArraysIsSpelledInFiniteText) {
  TypeGraph graph;
  const TypeId pointer = graph.add({.kind = TypeKind::Pointer, .size = 8});
  graph.replace(pointer, {.kind = TypeKind::Pointer, .size = 8, .target = pointer});
  const TypeId array = graph.array_of(TypeId{0}, 3);
  graph.replace(array, {.kind = TypeKind::Array, .target = array, .count = 3});

  EXPECT_EQ(graph.to_string(pointer), "...");
  EXPECT_EQ(graph.size_of(array), 0u);
}

TEST(TypeGraph, ArraySizesMultiplyAndOverflowToZero) {
  TypeGraph graph;
  const TypeId row = graph.array_of(*graph.find("int"), 3);
  TypeId huge = *graph.find("char");
  for (int i = 0; i < 3; ++i) huge = graph.array_of(huge, UINT32_MAX);

  EXPECT_EQ(graph.size_of(graph.array_of(row, 5)), 60u);
  EXPECT_EQ(graph.size_of(huge), 0u);
}

TEST(TypeGraph, FindsMembersThroughAnonymousUnions) {
  TypeGraph graph;
  const TypeId integer = *graph.find("int");
  const std::array inner = {Member{"low", integer, 0, 0}, Member{"flag", integer, 3, 1}};
  const TypeId anonymous = graph.add_struct(TypeKind::Union, "", 4, inner);
  const std::array outer = {Member{"first", integer, 0, 0}, Member{"", anonymous, 64, 0}};
  const TypeId id = graph.add_struct(TypeKind::Struct, "outer", 12, outer);

  const auto flag = graph.find_member(id, "flag");

  ASSERT_TRUE(flag);
  EXPECT_EQ(flag->bit_offset, 67u);
  EXPECT_EQ(flag->bit_width, 1u);
  EXPECT_EQ(flag->type, integer);
  EXPECT_FALSE(graph.find_member(id, "absent"));
  EXPECT_FALSE(graph.find_member(id, ""));
  EXPECT_FALSE(graph.find_member(integer, "low"));
}

TEST(TypeGraph, AMemberSearchInTypesThatNestForEverEnds) {
  TypeGraph graph;
  const TypeId self{static_cast<std::uint32_t>(graph.size())};
  const std::array members = {Member{"", self, 0, 0}, Member{"", self, 0, 0}};
  const TypeId id = graph.add_struct(TypeKind::Struct, "hall_of_mirrors", 8, members);

  ASSERT_EQ(id, self);
  EXPECT_FALSE(graph.find_member(id, "x"));
}

TEST(TypeGraph, IndexKeepsTheFirstButADefinitionBeatsAForward) {
  TypeGraph graph;
  const TypeId forward = graph.add({.kind = TypeKind::Forward, .name = "inode"});
  graph.index(forward);
  ASSERT_EQ(graph.find(TypeKind::Struct, "inode"), forward);
  const TypeId first = graph.add_struct(TypeKind::Struct, "inode", 8, {});
  const TypeId second = graph.add_struct(TypeKind::Struct, "inode", 16, {});

  graph.index(first);
  graph.index(second);

  EXPECT_EQ(graph.find(TypeKind::Struct, "inode"), first);
  EXPECT_FALSE(graph.find(TypeKind::Union, "inode"));
  EXPECT_FALSE(graph.find("inode"));
}

TEST(TypeGraph, FindsTheConstantsOfAnonymousEnums) {
  TypeGraph graph;
  const std::array values = {Enumerator{"RED", -1}, Enumerator{"BLUE", 7}};
  const TypeId id = graph.add_enum("", 4, true, values);

  graph.index(id);

  const auto blue = graph.find_enumerator("BLUE");
  ASSERT_TRUE(blue);
  EXPECT_EQ(blue->first, id);
  EXPECT_EQ(blue->second, 7);
  EXPECT_FALSE(graph.find_enumerator("GREEN"));
}

TEST(TypeGraph, PointersToTheSameTypeAreOneType) {
  TypeGraph graph;
  const TypeId integer = *graph.find("int");

  EXPECT_EQ(graph.pointer_to(integer), graph.pointer_to(integer));
  EXPECT_EQ(graph.size_of(graph.pointer_to(integer)), 8u);
}

TEST(TypeGraph, SpellsTypesAsCDoes) {
  TypeGraph graph;
  const TypeId character = *graph.find("char");
  const TypeId task = graph.add_struct(TypeKind::Struct, "task_struct", 64, {});
  const TypeId constant = graph.add({.kind = TypeKind::Const, .target = character});
  const TypeId text = graph.pointer_to(constant);
  const std::array arguments = {Parameter{"", text}, Parameter{"n", *graph.find("size_t")}};
  const TypeId function = graph.add_function(*graph.find("int"), arguments, true);
  const TypeId matrix = graph.array_of(graph.array_of(*graph.find("unsigned"), 4), 2);

  EXPECT_EQ(graph.to_string(graph.pointer_to(task)), "struct task_struct *");
  EXPECT_EQ(graph.to_string(graph.pointer_to(graph.pointer_to(character))), "char **");
  EXPECT_EQ(graph.to_string(text), "const char *");
  EXPECT_EQ(graph.to_string(graph.add({.kind = TypeKind::Const, .target = text})),
            "const char *const");
  EXPECT_EQ(graph.to_string(graph.pointer_to(function)), "int (*)(const char *, size_t, ...)");
  EXPECT_EQ(graph.to_string(graph.add_function(TypeId{0}, {}, false)), "void (void)");
  EXPECT_EQ(graph.to_string(matrix), "unsigned int [2][4]");
  EXPECT_EQ(graph.to_string(graph.pointer_to(matrix)), "unsigned int (*)[2][4]");
}

TEST(TypeGraph, NamesOutliveTheTextTheyWereAddedFrom) {
  TypeGraph graph;
  TypeId id;
  {
    std::string name = "a_name_that_is_longer_than_any_small_string_buffer";
    id = graph.add({.kind = TypeKind::Typedef, .name = name});
    name.assign(name.size(), 'x');
  }

  EXPECT_EQ(graph[id].name, "a_name_that_is_longer_than_any_small_string_buffer");
}

TEST(TypeGraph, AdoptedBytesLiveAsLongAsTheGraph) {
  TypeGraph graph;
  auto blob = std::make_shared<const std::vector<std::byte>>(bytes_of("vnode"));
  const std::span<const std::byte> view = graph.adopt(blob);
  blob.reset();

  const TypeId id = graph.append(
      {.kind = TypeKind::Typedef,
       .name = std::string_view(reinterpret_cast<const char*>(view.data()), view.size())});
  graph.index(id);

  EXPECT_EQ(graph.find("vnode"), id);
}

class TypeOverlay : public testing::Test {
 protected:
  TypeGraph make_base() {
    TypeGraph base;
    const std::array members = {Member{"pid", *base.find("int"), 0, 0}};
    base.index(base.add_struct(TypeKind::Struct, "task", 4, members));
    base.index(base.add({.kind = TypeKind::Forward, .name = "later"}));
    const std::array values = {Enumerator{"RUNNING", 7}};
    base.index(base.add_enum("state", 4, true, values));
    return base;
  }
  TypeGraph base_ = make_base();
  TypeGraph overlay_{&base_};
};

TEST_F(TypeOverlay, FindsTheBasesTypesUnderTheirNumbers) {
  const TypeId task = *base_.find(TypeKind::Struct, "task");

  EXPECT_EQ(overlay_.find(TypeKind::Struct, "task"), task);
  EXPECT_EQ(overlay_.find("long unsigned int"), base_.find("unsigned long"));
  EXPECT_EQ(overlay_.find_enumerator("RUNNING"), base_.find_enumerator("RUNNING"));
  EXPECT_EQ(overlay_.members(task).front().name, "pid");
  EXPECT_EQ(overlay_.to_string(task), "struct task");
  EXPECT_EQ(overlay_.size(), base_.size());
}

TEST_F(TypeOverlay, KeepsWhatIsAddedFromTheBase) {
  const std::size_t before = base_.size();
  const TypeId first = overlay_.next_id();
  const TypeId task = *overlay_.find(TypeKind::Struct, "task");
  const std::array members = {Member{"of", overlay_.pointer_to(task), 0, 0},
                              Member{"words", overlay_.array_of(*overlay_.find("long"), 2), 64, 0}};
  const TypeId own = overlay_.add_struct(TypeKind::Struct, "own", 24, members);
  overlay_.index(own);

  EXPECT_EQ(base_.size(), before);
  EXPECT_FALSE(base_.find(TypeKind::Struct, "own"));
  EXPECT_EQ(overlay_.find(TypeKind::Struct, "own"), own);
  EXPECT_EQ(overlay_.members(own).back().name, "words");
  EXPECT_EQ(overlay_.size_of(overlay_.members(own).back().type), 16u);
  EXPECT_EQ(overlay_.to_string(overlay_.members(own).front().type), "struct task *");
  EXPECT_EQ(overlay_.next_id().value - first.value, 3u);
  EXPECT_EQ(overlay_.size(), before + 3);
}

TEST_F(TypeOverlay, HasOnePointerForATarget) {
  const TypeId task = *base_.find(TypeKind::Struct, "task");
  const TypeId shared = base_.pointer_to(task);
  const TypeId number = *base_.find("int");

  EXPECT_EQ(overlay_.pointer_to(task), shared);
  EXPECT_EQ(overlay_.pointer_to(number), overlay_.pointer_to(number));
  EXPECT_EQ(overlay_.pointer_to(overlay_.pointer_to(number)),
            overlay_.pointer_to(overlay_.pointer_to(number)));
}

TEST_F(TypeOverlay, ANameOfTheBaseStaysTheBasesUnlessItWasNeverDefined) {
  const TypeId task = overlay_.add_struct(TypeKind::Struct, "task", 8, {});
  const TypeId later = overlay_.add_struct(TypeKind::Struct, "later", 8, {});
  const std::array values = {Enumerator{"RUNNING", 1}};
  overlay_.index(task);
  overlay_.index(later);
  overlay_.index(overlay_.add_enum("mine", 4, true, values));

  EXPECT_EQ(overlay_.find(TypeKind::Struct, "task"), base_.find(TypeKind::Struct, "task"));
  EXPECT_EQ(overlay_.find(TypeKind::Struct, "later"), later);
  EXPECT_EQ(base_[*base_.find(TypeKind::Struct, "later")].kind, TypeKind::Forward);
  EXPECT_EQ(overlay_.find_enumerator("RUNNING")->second, 7);
}

TEST_F(TypeOverlay, TwoProgramsDeclareTheSameNameOverOneKernel) {
  TypeGraph other(&base_);
  const TypeId here =
      overlay_.add({.kind = TypeKind::Typedef, .name = "mine_t", .target = *base_.find("int")});
  const TypeId there =
      other.add({.kind = TypeKind::Typedef, .name = "mine_t", .target = *base_.find("char")});
  overlay_.index(here);
  other.index(there);

  EXPECT_EQ(overlay_.size_of(*overlay_.find("mine_t")), 4u);
  EXPECT_EQ(other.size_of(*other.find("mine_t")), 1u);
  EXPECT_FALSE(base_.find("mine_t"));
}

TEST_F(TypeOverlay, KeepsItsTypesWhenTheBaseGrows) {
  const TypeId own =
      overlay_.add({.kind = TypeKind::Typedef, .name = "mine_t", .target = *base_.find("int")});
  base_.index(base_.add_struct(TypeKind::Struct, "of_a_module", 48, {}));

  EXPECT_EQ(overlay_[own].name, "mine_t");
  EXPECT_EQ(overlay_.size_of(*overlay_.find(TypeKind::Struct, "of_a_module")), 48u);
}

TEST_F(TypeOverlay, CompletesAStructureOfItsOwnInPlace) {
  const TypeId own = overlay_.add({.kind = TypeKind::Forward, .name = "own"});
  const TypeId pointer = overlay_.pointer_to(own);
  const TypeId made = overlay_.add_struct(TypeKind::Struct, "own", 12, {});
  overlay_.replace(own, Type(overlay_[made]));

  EXPECT_EQ(overlay_.size_of(overlay_[pointer].target), 12u);
}

TEST_F(TypeOverlay, SaysWhatLiesInAProcess) {
  const TypeId function = base_.add_function({}, {}, false);
  const TypeId number = *base_.find("int"), pointer = overlay_.user_pointer_to(number);

  EXPECT_TRUE(overlay_.is_userland(overlay_[pointer].target));
  EXPECT_EQ(overlay_.resolve(overlay_[pointer].target), overlay_.resolve(number));
  EXPECT_EQ(overlay_.user_pointer_to(number), pointer);
  EXPECT_NE(overlay_.pointer_to(number), pointer);
  EXPECT_EQ(overlay_.userland(overlay_.userland(number)), overlay_.userland(number));
  EXPECT_EQ(overlay_.to_string(pointer), "int *");
  EXPECT_EQ(overlay_.to_string(overlay_.user_pointer_to(function)), "void (*)(void)");
}

}  // namespace
}  // namespace ringside
