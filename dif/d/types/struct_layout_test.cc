#include "dif/d/types/struct_layout.h"

#include <gtest/gtest.h>

#include "dif/d/types/system_types.h"

namespace ringside::d {
namespace {

class StructLayoutTest : public testing::Test {
 protected:
  StructLayoutTest() : types_(with_system_types(graph_), 256), alignments_(types_) {}

  static TypeGraph& with_system_types(TypeGraph& graph) {
    add_system_types(graph);
    return graph;
  }
  /// The tag of what is wrong with the next member; empty when nothing is.
  std::string add(StructLayout& layout, std::string_view type, const char* name,
                  std::optional<std::int64_t> bits = std::nullopt) {
    names_.push_back(std::make_unique<std::string>(name));
    Declarator declarator;
    declarator.name = *name == '\0' ? nullptr : names_.back().get();
    Expr width;
    if (bits) declarator.bit_width = &width;
    auto done = layout.check(declarator, types_.named(type));
    if (done) done = layout.place(declarator, types_.named(type), bits);
    return done ? std::string() : std::string(done.error().tag);
  }

  TypeGraph graph_;
  Types types_;
  Alignments alignments_;
  std::vector<std::unique_ptr<std::string>> names_;
};

TEST_F(StructLayoutTest, AlignsMembersAndTheWhole) {
  StructLayout layout(TypeKind::Struct, types_, alignments_);

  EXPECT_EQ(add(layout, "char", "a") + add(layout, "long", "b") + add(layout, "short", "c"), "");

  ASSERT_EQ(layout.members().size(), 3u);
  EXPECT_EQ(layout.members()[1].bit_offset, 64u);
  EXPECT_EQ(layout.members()[2].bit_offset, 128u);
  EXPECT_EQ(layout.size(), 24u);
}

TEST_F(StructLayoutTest, AnOddSizeIsAlignedByTheLargestPowerOfTwoInIt) {
  graph_.index(graph_.add({.kind = TypeKind::Integer, .name = "odd_t", .size = 12}));
  StructLayout layout(TypeKind::Struct, types_, alignments_);

  EXPECT_EQ(add(layout, "char", "a"), "");
  EXPECT_EQ(add(layout, "odd_t", "b"), "");

  ASSERT_EQ(layout.members().size(), 2u);
  EXPECT_EQ(layout.members()[1].bit_offset, 32u);
  EXPECT_EQ(layout.size(), 16u);
}

TEST_F(StructLayoutTest, MembersOfAUnionLieOnTopOfEachOther) {
  StructLayout layout(TypeKind::Union, types_, alignments_);

  EXPECT_EQ(add(layout, "int", "a") + add(layout, "long", "b") + add(layout, "char", "c"), "");

  for (const Member& member : layout.members()) EXPECT_EQ(member.bit_offset, 0u);
  EXPECT_EQ(layout.size(), 8u);
}

TEST_F(StructLayoutTest, BitFieldsDoNotStraddleUnits) {
  StructLayout layout(TypeKind::Struct, types_, alignments_);

  EXPECT_EQ(add(layout, "int", "a", 30) + add(layout, "int", "b", 3) + add(layout, "int", "", 0) +
                add(layout, "int", "c", 1),
            "");

  ASSERT_EQ(layout.members().size(), 3u) << "the width of 0 has no member";
  EXPECT_EQ(layout.members()[1].bit_offset, 32u);
  EXPECT_EQ(layout.members()[2].bit_offset, 64u);
  EXPECT_EQ(layout.size(), 12u);
}

TEST_F(StructLayoutTest, RefusesWhatCannotBeAMember) {
  StructLayout layout(TypeKind::Struct, types_, alignments_);
  EXPECT_EQ(add(layout, "int", "a"), "");

  EXPECT_EQ(add(layout, "int", "a"), "D_UNKNOWN") << "the name is taken";
  EXPECT_EQ(add(layout, "int", ""), "D_DECL_MNAME");
  EXPECT_EQ(add(layout, "int", "b", 33), "D_DECL_BFSIZE");
  EXPECT_EQ(add(layout, "int", "c", -1), "D_DECL_BFCONST");
  EXPECT_EQ(add(layout, "void", "d"), "D_DECL_VOIDOBJ");
}

}  // namespace
}  // namespace ringside::d
