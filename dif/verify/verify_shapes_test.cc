#include "dif/verify/verify_shapes.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"

namespace ringside::dif {
namespace {

using namespace testing;

std::string verdict_on(const Program& source) {
  const auto done = verify_program(source);
  return done ? "" : done.error().message;
}

TypeShape shape(TypeShape::Kind kind, std::uint64_t size) {
  TypeShape made;
  made.kind = kind;
  made.size = size;
  return made;
}

/// Why print() of shape 0 is refused, which has 64 bytes.
std::string shape_refusal(std::vector<TypeShape> shapes) {
  Action print =
      action(ActionKind::Print, {difo({encode_return(0)}, {ValueKind::Bytes, false, 64})});
  print.shapes = {0};
  Program source = program({clause({print})});
  source.shapes = std::move(shapes);
  return verdict_on(source);
}

TEST(ShapeVerifier, ShapesReferToShapes) {
  TypeShape pointer = shape(TypeShape::Kind::Pointer, 8);
  EXPECT_EQ(shape_refusal({pointer}), "") << "a pointer may point at its own type";
  pointer.element = 1;
  EXPECT_EQ(shape_refusal({pointer}), "shape 0 points at no shape");
  EXPECT_EQ(shape_refusal({}), "shape 0 does not exist");
  EXPECT_NE(shape_refusal({shape(static_cast<TypeShape::Kind>(50), 8)}), "");
}

TEST(ShapeVerifier, PartsLieInsideAndDoNotContainTheirWhole) {
  const TypeShape word = shape(TypeShape::Kind::Integer, 8);
  TypeShape whole = shape(TypeShape::Kind::Struct, 64);
  whole.members = {{"a", 1, 0, 0}, {"b", 1, 448, 0}, {"c", 1, 511, 1}};
  EXPECT_EQ(shape_refusal({whole, word}), "");
  whole.members = {{"a", 1, 449, 0}};
  EXPECT_EQ(shape_refusal({whole, word}), "shape 0 has a member that lies outside it");
  whole.members = {{"a", 1, 510, 3}};
  EXPECT_NE(shape_refusal({whole, word}), "");
  whole.members = {{"a", 1, 448, 64}};
  EXPECT_EQ(shape_refusal({whole, word}), "");
  whole.members = {{"a", 1, 0, 65}};
  EXPECT_NE(shape_refusal({whole, word}), "") << "no number has so many bits";
  whole.members = {{"a", 2, 0, 0}};
  EXPECT_EQ(shape_refusal({whole, word}), "shape 0 has a member of no shape");
  whole.members = {{"a", 1, 0, 0}};
  EXPECT_NE(shape_refusal({whole, shape(TypeShape::Kind::Integer, 65)}), "");
  EXPECT_EQ(shape_refusal({whole, shape(TypeShape::Kind::Integer, 64)}), "");
  whole.members = {{"a", 0, 0, 0}};
  EXPECT_EQ(shape_refusal({whole}), "shape 0 contains itself");
  whole.size = 72;
  whole.members = {};
  EXPECT_NE(shape_refusal({whole}), "") << "larger than what is recorded";

  TypeShape array = shape(TypeShape::Kind::Array, 64);
  array.element = 1;
  array.count = 8;
  EXPECT_EQ(shape_refusal({array, word}), "");
  array.count = 9;
  EXPECT_EQ(shape_refusal({array, word}), "shape 0 has elements that lie outside it");
  const TypeShape large = shape(TypeShape::Kind::Integer, 65);
  array.count = 1;
  EXPECT_NE(shape_refusal({array, large}), "");
  array.count = 0;
  EXPECT_EQ(shape_refusal({array, large}), "") << "that has none";
}

TEST(ShapeVerifier, AValueHasBoundedlyManyParts) {
  std::vector<TypeShape> shapes;
  for (std::uint32_t i = 0; i < 40; ++i) {  // each has two of the next, all without size
    TypeShape pair = shape(TypeShape::Kind::Struct, 0);
    pair.members = {{"l", i + 1, 0, 0}, {"r", i + 1, 0, 0}};
    shapes.push_back(pair);
  }
  shapes.push_back(shape(TypeShape::Kind::Struct, 0));
  EXPECT_NE(shape_refusal(shapes).find("has more parts than can be printed"), std::string::npos);

  TypeShape empty_many = shape(TypeShape::Kind::Array, 0);
  empty_many.element = 1;
  empty_many.count = UINT32_MAX;
  EXPECT_NE(shape_refusal({empty_many, shape(TypeShape::Kind::Struct, 0)}), "");
  empty_many.count = 2'097'151;  // and itself
  EXPECT_EQ(shape_refusal({empty_many, shape(TypeShape::Kind::Struct, 0)}), "");
  empty_many.count = 2'097'152;
  EXPECT_NE(shape_refusal({empty_many, shape(TypeShape::Kind::Struct, 0)}), "");
  empty_many.element = 2;
  empty_many.count = 0;
  EXPECT_EQ(shape_refusal({empty_many, shape(TypeShape::Kind::Struct, 0)}),
            "shape 0 is made of no shape");
}

TEST(ShapeVerifier, AValueIsNestedOnlySoDeep) {
  const auto with = [](TypeShape::Kind kind, std::uint32_t below) {
    std::vector<TypeShape> shapes;
    for (std::uint32_t i = 1; i <= below; ++i) {
      TypeShape outer = shape(kind, 8);
      outer.element = i;
      outer.count = 1;
      outer.members = {{"m", i, 0, 0}};
      shapes.push_back(outer);
    }
    shapes.push_back(shape(TypeShape::Kind::Integer, 8));
    return shape_refusal(shapes);
  };
  for (const TypeShape::Kind kind :
       {TypeShape::Kind::Struct, TypeShape::Kind::Union, TypeShape::Kind::Array}) {
    EXPECT_EQ(with(kind, kDeepestShape), "");
    EXPECT_EQ(with(kind, kDeepestShape + 1), "shape 65 is nested too deep");
  }
}

TEST(ShapeVerifier, PrintHasTheBytesOfWhatItPrints) {
  const auto with = [](ValueType value, TypeShape::Kind kind, std::uint64_t size) {
    Action print = action(ActionKind::Print, {difo({encode_return(0)}, value)});
    print.shapes = {0};
    Program source = program({clause({print})});
    source.shapes = {shape(kind, size)};
    return verdict_on(source);
  };
  const ValueType bytes{ValueKind::Bytes, false, 64};
  EXPECT_EQ(with(bytes, TypeShape::Kind::Struct, 64), "");
  EXPECT_NE(with(bytes, TypeShape::Kind::Struct, 65), "");
  EXPECT_NE(with(kLong, TypeShape::Kind::Struct, 8), "") << "a number is no struct";
  EXPECT_EQ(with(kLong, TypeShape::Kind::Integer, 8), "");
  EXPECT_EQ(with(kString, TypeShape::Kind::Array, 128), "") << "of characters";
}

TEST(ShapeVerifier, PrintNeedsAType) {
  EXPECT_FALSE(verify_program(program({clause({action(ActionKind::Print, {constant(1)})})})));
}

}  // namespace
}  // namespace ringside::dif
