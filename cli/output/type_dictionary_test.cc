#include "cli/output/type_dictionary.h"

#include <gtest/gtest.h>

namespace ringside::cli {
namespace {

class Dictionary : public testing::Test {
 protected:
  TypeId type(std::string_view name) const { return types_.find(name).value_or(TypeId{}); }

  TypeGraph types_;
  const TypeId first_ = types_.next_id();
};

TEST_F(Dictionary, HoldsStructuresWithOffsets) {
  const Member members[] = {{"a", type("char"), 0, 0},
                            {"list", types_.array_of(type("int"), 3), 32, 0},
                            {"low", type("unsigned int"), 128, 5}};
  types_.add_struct(TypeKind::Struct, "s", 20, members);

  EXPECT_EQ(c_dictionary(types_, first_),
            "struct s {\n"
            "    char a; /* at 0 */\n"
            "    int list[3]; /* at 4 */\n"
            "    unsigned int low : 5; /* bit 128 */\n"
            "}; /* 20 bytes */\n");
}

TEST_F(Dictionary, HoldsAnonymousTypesWhereTheyStand) {
  const Member words[] = {{"low", type("int"), 0, 0}};
  const TypeId inner = types_.add_struct(TypeKind::Union, "", 4, words);
  const Member members[] = {{"", inner, 0, 0}, {"at", types_.array_of(inner, 2), 32, 0}};
  types_.add_struct(TypeKind::Struct, "s", 12, members);

  EXPECT_EQ(c_dictionary(types_, first_),
            "struct s {\n"
            "    union {\n"
            "        int low; /* at 0 */\n"
            "    }; /* at 0 */\n"
            "    union {\n"
            "        int low; /* at 0 */\n"
            "    } at[2]; /* at 4 */\n"
            "}; /* 12 bytes */\n");
}

TEST_F(Dictionary, HoldsEnumerationsTypedefsAndWhatIsIncomplete) {
  const Enumerator colors[] = {{"RED", 0}, {"BLUE", -2}};
  const TypeId color = types_.add_enum("color", 4, true, colors);
  types_.add({.kind = TypeKind::Typedef, .name = "table_t", .target = types_.array_of(color, 2)});
  types_.add({.kind = TypeKind::Forward, .name = "later"});

  EXPECT_EQ(c_dictionary(types_, first_),
            "enum color {\n"
            "    RED = 0,\n"
            "    BLUE = -2,\n"
            "}; /* 4 bytes */\n"
            "typedef enum color table_t[2]; /* 8 bytes */\n"
            "struct later;\n");
}

TEST_F(Dictionary, OfDHoldsWhatIsMadeOfTypes) {
  types_.pointer_to(types_.pointer_to(type("int")));
  types_.array_of(type("char"), 7);

  EXPECT_EQ(d_dictionary(types_, first_, 64),
            "string /* 64 bytes */\n"
            "int * /* 8 bytes */\n"
            "int ** /* 8 bytes */\n"
            "char [7] /* 7 bytes */\n");
}

TEST_F(Dictionary, ThatCannotBeWrittenIsAnError) {
  const auto done = write_dictionary("/nonexistent/types", "");

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message,
            "failed to write '/nonexistent/types': No such file or directory");
}

}  // namespace
}  // namespace ringside::cli
