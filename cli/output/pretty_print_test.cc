#include "cli/output/pretty_print.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace ringside::cli {
namespace {

using dif::TypeShape;
using Kind = TypeShape::Kind;

class FakeNames : public CodeNames {
 public:
  std::string describe(GuestVirt at) const override {
    return at.raw() == 0x1000 ? "vmlinux`vfs_read" : "0x2000";
  }
};

TypeShape scalar(Kind kind, std::string name, std::uint64_t size, bool is_signed = false) {
  TypeShape shape;
  shape.kind = kind;
  shape.name = std::move(name);
  shape.size = size;
  shape.is_signed = is_signed;
  return shape;
}

TypeShape array(std::string name, std::uint32_t element, std::uint32_t count, std::uint64_t size) {
  TypeShape shape = scalar(Kind::Array, std::move(name), size);
  shape.element = element;
  shape.count = count;
  return shape;
}

class PrettyPrint : public testing::Test {
 protected:
  enum : std::uint32_t {
    kInt,
    kChar,
    kEnum,
    kFunction,
    kPointer,
    kName,
    kInner,
    kInts,
    kOuter,
    kPair,
    kWide,
    kSignedWide
  };

  PrettyPrint() {
    TypeShape character = scalar(Kind::Integer, "char", 1, true);
    character.is_char = true;
    TypeShape color = scalar(Kind::Enum, "enum color", 4, true);
    color.enumerators = {{"RED", 0}, {"BLUE", 2}, {"NONE", -1}};
    TypeShape pointer = scalar(Kind::Pointer, "int (*)()", 8);
    pointer.element = kFunction;
    TypeShape inner = scalar(Kind::Struct, "struct inner", 8);
    inner.members = {{"low", kInt, 0, 3}, {"next", kInt, 3, 5}, {"color", kEnum, 32, 0}};
    TypeShape outer = scalar(Kind::Struct, "struct outer", 40);
    outer.members = {{"name", kName, 0, 0},
                     {"inner", kInner, 64, 0},
                     {"list", kInts, 128, 0},
                     {"call", kPointer, 192, 0},
                     {"", kInner, 256, 0}};
    shapes_ = {scalar(Kind::Integer, "int", 4, true),
               character,
               color,
               scalar(Kind::Function, "int ()", 0),
               pointer,
               array("char [8]", kChar, 8, 8),
               inner,
               array("int [2]", kInt, 2, 8),
               outer,
               array("struct inner [2]", kInner, 2, 16),
               scalar(Kind::Integer, "unsigned __int128", 16),
               scalar(Kind::Integer, "__int128", 16, true)};
  }

  std::string print(std::uint32_t shape, Bytes bytes) const {
    std::string text;
    append_print(text, shapes_, shape, bytes, FakeNames());
    return text;
  }
  template <class T>
  std::string print(std::uint32_t shape, T value) const {
    return print(shape, std::as_bytes(std::span(&value, 1)));
  }

  std::vector<TypeShape> shapes_;
};

TEST_F(PrettyPrint, IntegersOf128BitsAreWhole) {
  using Halves = std::array<std::uint64_t, 2>;
  EXPECT_EQ(print(kWide, Halves{0x1234, 0}), "unsigned __int128 0x1234");
  EXPECT_EQ(print(kWide, Halves{5, 0xab}), "unsigned __int128 0xab0000000000000005");
  EXPECT_EQ(print(kSignedWide, Halves{0, 0}), "__int128 0");
  EXPECT_EQ(print(kSignedWide, Halves{~0ULL - 1, ~0ULL}),
            "__int128 0xfffffffffffffffffffffffffffffffe");
  EXPECT_EQ(print(kWide, std::uint64_t{5}), "unsigned __int128 ...") << "half was recorded";
}

TEST_F(PrettyPrint, ScalarsAreHexadecimalBehindTheirType) {
  EXPECT_EQ(print(kInt, 26), "int 0x1a");
  EXPECT_EQ(print(kInt, 0), "int 0");
  EXPECT_EQ(print(kInt, -1), "int 0xffffffff");
  EXPECT_EQ(print(kChar, 'a'), "char 'a'");
  EXPECT_EQ(print(kChar, '\0'), "char '\\0'");
  EXPECT_EQ(print(kChar, '\n'), "char '\\012'");
}

TEST_F(PrettyPrint, EnumeratorsHaveNames) {
  EXPECT_EQ(print(kEnum, 2), "enum color BLUE");
  EXPECT_EQ(print(kEnum, -1), "enum color NONE");
  EXPECT_EQ(print(kEnum, 77), "enum color 77");
}

TEST_F(PrettyPrint, PointersToFunctionsAreNamed) {
  EXPECT_EQ(print(kPointer, std::uint64_t{0x1000}), "int (*)() vmlinux`vfs_read");
  EXPECT_EQ(print(kPointer, std::uint64_t{0x2000}), "int (*)() 0x2000");
  EXPECT_EQ(print(kPointer, std::uint64_t{0}), "int (*)() 0");
}

struct Outer {
  std::array<char, 8> name;
  std::uint32_t bits;
  std::int32_t color;
  std::array<std::int32_t, 2> list;
  std::uint64_t call;
  std::uint32_t more_bits;
  std::int32_t more_color;
};

TEST_F(PrettyPrint, StructuresNestWithFourColumnsOfIndent) {
  const Outer value{{'a', '"', '\x01'}, 0x15, 2, {1, 2}, 0x1000, 0, 0};

  EXPECT_EQ(print(kOuter, value),
            "struct outer {\n"
            "    char [8] name = [ \"a\\\"\\001\" ]\n"
            "    struct inner inner = {\n"
            "        int low :3 = 0x5\n"
            "        int next :5 = 0x2\n"
            "        enum color color = BLUE\n"
            "    }\n"
            "    int [2] list = [ 0x1, 0x2 ]\n"
            "    int (*)() call = vmlinux`vfs_read\n"
            "    struct inner {\n"
            "        int low :3 = 0\n"
            "        int next :5 = 0\n"
            "        enum color color = RED\n"
            "    }\n"
            "}");
}

TEST_F(PrettyPrint, ArraysOfStructuresHaveALineEach) {
  const std::array<std::uint32_t, 4> pair{1, 0, 2, 2};

  EXPECT_EQ(print(kPair, pair),
            "struct inner [2] [\n"
            "    struct inner {\n"
            "        int low :3 = 0x1\n"
            "        int next :5 = 0\n"
            "        enum color color = RED\n"
            "    },\n"
            "    struct inner {\n"
            "        int low :3 = 0x2\n"
            "        int next :5 = 0\n"
            "        enum color color = BLUE\n"
            "    }\n"
            "]");
}

TEST_F(PrettyPrint, WhatWasNotRecordedIsDots) {
  const std::array<std::int32_t, 2> list{1, 2};
  const Bytes bytes = std::as_bytes(std::span(list));

  EXPECT_EQ(print(kInts, bytes.first(4)), "int [2] [ 0x1, ... ]");
  EXPECT_EQ(print(kInt, bytes.first(2)), "int ...");
  EXPECT_EQ(print(kInner, bytes.first(2)),
            "struct inner {\n"
            "    int low :3 = 0x1\n"
            "    int next :5 = 0\n"
            "    enum color color = ...\n"
            "}");
}

TEST_F(PrettyPrint, UnsignedCharactersAreNumbersAndStarsTouchNames) {
  TypeShape byte = scalar(Kind::Integer, "uint8_t", 1);
  byte.is_char = true;
  TypeShape holder = scalar(Kind::Struct, "struct holder", 10);
  holder.members = {{"pair", 1, 0, 0}, {"next", 2, 16, 0}};
  shapes_ = {byte, array("uint8_t [2]", 0, 2, 2), scalar(Kind::Pointer, "void *", 8), holder};

  EXPECT_EQ(print(3, std::array<std::uint8_t, 10>{65, 66, 1}),
            "struct holder {\n"
            "    uint8_t [2] pair = [ 0x41, 0x42 ]\n"
            "    void *next = 0x1\n"
            "}");
}

TEST_F(PrettyPrint, PlainCharIsACharacterWhereItHasNoSign) {
  shapes_ = {scalar(Kind::Integer, "char", 1), array("char [4]", 0, 4, 4)};
  shapes_[0].is_char = true;

  EXPECT_EQ(print(1, std::array<char, 4>{'a', 'b', 0, 0}), "char [4] [ \"ab\" ]");
}

TEST_F(PrettyPrint, AShapeThatHoldsItselfEnds) {
  TypeShape loop = scalar(Kind::Struct, "struct loop", 4);
  loop.members = {{"self", 0, 0, 0}};
  shapes_ = {loop};

  const std::string text = print(0, 1);

  EXPECT_NE(text.find("{ ... }"), std::string::npos);
}

TEST(ReadScalar, BitFieldsMayCrossEightBytes) {
  TypeShape shape = scalar(Kind::Integer, "long", 8, true);
  std::array<std::uint8_t, 9> bytes{};
  bytes[7] = 0xf0;
  bytes[8] = 0x01;
  std::uint64_t value = 0;

  ASSERT_TRUE(read_scalar(shape, std::as_bytes(std::span(bytes)), 7, 62, value));

  EXPECT_EQ(value, 0xf0ULL << 56 >> 7 | 1ULL << 57);
  EXPECT_FALSE(read_scalar(shape, std::as_bytes(std::span(bytes)).first(8), 7, 62, value));
}

TEST(ReadScalar, NegativeBitFieldsAreExtended) {
  const TypeShape shape = scalar(Kind::Integer, "int", 4, true);
  const std::uint32_t bits = 0x7 << 2;
  std::uint64_t value = 0;

  ASSERT_TRUE(read_scalar(shape, std::as_bytes(std::span(&bits, 1)), 2, 3, value));

  EXPECT_EQ(static_cast<std::int64_t>(value), -1);
}

}  // namespace
}  // namespace ringside::cli
