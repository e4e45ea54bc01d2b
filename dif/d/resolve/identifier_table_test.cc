#include "dif/d/resolve/identifier_table.h"

#include <gtest/gtest.h>

namespace ringside::d {
namespace {

constexpr Location kHere{3, 1, 3, 0};

TEST(IdentifierTable, GivesEachVariableOfAScopeAnIdOfItsOwn) {
  IdentifierTable identifiers(std::nullopt);

  const auto a = identifiers.add_variable(Scope::Global, "a", kHere);
  const auto b = identifiers.add_variable(Scope::Global, "b", kHere);
  const auto self = identifiers.add_variable(Scope::Thread, "a", kHere);

  ASSERT_TRUE(a && b && self);
  EXPECT_EQ((*a)->id, dif::kFirstUserVariable);
  EXPECT_EQ((*b)->id, dif::kFirstUserVariable + 1);
  EXPECT_EQ((*self)->id, dif::kFirstUserVariable);
  EXPECT_EQ(identifiers.find_identifier(Scope::Global, "a"), *a);
  EXPECT_EQ(identifiers.find_identifier(Scope::Thread, "a"), *self);
  EXPECT_EQ(identifiers.find_identifier(Scope::Clause, "a"), nullptr);
}

TEST(IdentifierTable, SaysWhenAScopeIsFull) {
  IdentifierTable identifiers(std::nullopt);
  for (unsigned id = dif::kFirstUserVariable; id < UINT16_MAX; ++id) {
    ASSERT_TRUE(identifiers.add_variable(Scope::Clause, "v" + std::to_string(id), kHere));
  }

  const auto one_more = identifiers.add_variable(Scope::Clause, "v", kHere);

  ASSERT_FALSE(one_more);
  EXPECT_EQ(one_more.error().tag, "D_ID_OFLOW");
}

TEST(IdentifierTable, HidesNamesOfALaterD) {
  const IdentifierTable old(Version{1, 0, 0}), ours(std::nullopt);

  EXPECT_TRUE(ours.is_of_d("ucaller"));
  EXPECT_TRUE(old.is_hidden("ucaller"));
  EXPECT_FALSE(old.is_of_d("ucaller")) << "a program may have a variable of this name";
  EXPECT_TRUE(old.is_of_d("printf"));
  EXPECT_FALSE(old.is_of_d("mine"));
}

TEST(IdentifierTable, HasOneSymbolForEachSubroutine) {
  IdentifierTable identifiers(std::nullopt);
  const auto strlen = *dif::find_subroutine("strlen"), rand = *dif::find_subroutine("rand");

  EXPECT_EQ(identifiers.subroutine(strlen), identifiers.subroutine(strlen));
  EXPECT_NE(identifiers.subroutine(strlen), identifiers.subroutine(rand));
}

TEST(InterfacePragmas, CountWhetherTheyComeBeforeOrAfterTheirName) {
  IdentifierTable identifiers(std::nullopt);
  const dif::Attributes evolving{dif::Stability::Evolving, dif::Stability::Evolving,
                                 dif::DependencyClass::Common};

  identifiers.pragmas().add_attributes("before", kHere, evolving);
  const auto before = identifiers.add_variable(Scope::Global, "before", kHere);
  const auto other = identifiers.add_variable(Scope::Thread, "after", kHere);
  identifiers.pragmas().add_attributes("after", kHere, evolving);
  const auto after = identifiers.add_variable(Scope::Global, "after", kHere);

  ASSERT_TRUE(before && other && after);
  EXPECT_EQ((*before)->attributes, evolving);
  EXPECT_EQ((*after)->attributes, evolving);
  EXPECT_EQ((*other)->attributes, dif::Attributes{}) << "pragmas are about global names";
  EXPECT_TRUE(identifiers.pragmas().check_unused());
}

TEST(InterfacePragmas, OfAProgramMustBeUsed) {
  InterfacePragmas pragmas;
  pragmas.add_binding("library's", {1, 1, 1, 1}, {1, 5, 0});
  EXPECT_TRUE(pragmas.check_unused());

  pragmas.add_binding("nobody", kHere, {1, 5, 0});

  ASSERT_FALSE(pragmas.check_unused());
  EXPECT_EQ(pragmas.check_unused().error().text, "unused #pragma binding nobody");
}

TEST(InterfacePragmas, BindANameToALaterD) {
  IdentifierTable identifiers(Version{1, 2, 0});
  Identifier late;
  late.kind = Identifier::Kind::Inline;
  late.name = "late";
  identifiers.pragmas().add_binding("late", kHere, {1, 5, 0});
  identifiers.add_inline(late);
  EXPECT_EQ(identifiers.find_identifier(Scope::Global, "late"), nullptr);

  const auto own = identifiers.add_variable(Scope::Global, "late", kHere);

  ASSERT_TRUE(own);
  EXPECT_EQ(identifiers.find_identifier(Scope::Global, "late"), *own);
}

}  // namespace
}  // namespace ringside::d
