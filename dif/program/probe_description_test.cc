#include "dif/program/probe_description.h"

#include <gtest/gtest.h>

namespace ringside::dif {
namespace {

TEST(Glob, StarMatchesAnyRunAlsoTheEmptyOne) {
  EXPECT_TRUE(glob_match("tcp_*", "tcp_"));
  EXPECT_TRUE(glob_match("*read*", "vfs_read"));
  EXPECT_TRUE(glob_match("a*b*c", "a__b_b__c"));
  EXPECT_FALSE(glob_match("a*b*c", "a__b_b__"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("**", "x"));
}

TEST(Glob, QuestionMarkMatchesExactlyOneByte) {
  EXPECT_TRUE(glob_match("vfs_?ead", "vfs_read"));
  EXPECT_FALSE(glob_match("vfs_read?", "vfs_read"));
  EXPECT_FALSE(glob_match("?", ""));
}

TEST(Glob, ClassesTakeRangesAndComplements) {
  EXPECT_TRUE(glob_match("x[0-9]", "x7"));
  EXPECT_FALSE(glob_match("x[!0-9]", "x7"));
  EXPECT_TRUE(glob_match("x[!0-9]", "xy"));
  EXPECT_TRUE(glob_match("[]a]", "]")) << "a bracket that comes first is a member";
  EXPECT_TRUE(glob_match("[a-]", "-"));
  EXPECT_TRUE(glob_match("[\\]]", "]"));
  EXPECT_TRUE(glob_match("*[rw]*", "vfs_write"));
}

TEST(Glob, AnUnclosedBracketIsAByteOfItsOwn) {
  EXPECT_TRUE(glob_match("a[b", "a[b"));
  EXPECT_FALSE(glob_match("a[b", "ab"));
}

TEST(Glob, BackslashTakesTheMeaningAway) {
  EXPECT_TRUE(glob_match("a\\*", "a*"));
  EXPECT_FALSE(glob_match("a\\*", "ab"));
  EXPECT_TRUE(glob_match("a\\", "a\\"));
  EXPECT_FALSE(is_glob("a\\*"));
  EXPECT_TRUE(is_glob("a\\\\*"));
  EXPECT_FALSE(is_glob("vfs_read"));
}

TEST(Glob, ManyStarsDoNotExplode) {
  std::string pattern, text(2000, 'a');
  for (int i = 0; i < 50; ++i) pattern += "a*";
  EXPECT_FALSE(glob_match(pattern + "b", text));
  EXPECT_TRUE(glob_match(pattern, text));
}

TEST(ProbeDescription, EmptyFieldsOfThePatternMatchAnything) {
  const ProbeDescription probe{"fbt", "vmlinux", "vfs_read", "entry"};

  EXPECT_TRUE(matches({"fbt", "", "vfs_*", "entry"}, probe));
  EXPECT_FALSE(matches({"fbt", "", "vfs_*", "return"}, probe));
  EXPECT_TRUE(matches({}, probe));
  EXPECT_FALSE(matches({"", "loop", "", ""}, probe));
  EXPECT_EQ(probe.to_string(), "fbt:vmlinux:vfs_read:entry");
}

TEST(ProbeDescription, TheMachineIsAPatternBeforeTheFourFields) {
  const ProbeDescription every{"fbt", "", "vfs_*", "entry"};
  ProbeDescription some = every;
  some.machine = "web*";

  EXPECT_EQ(some.to_string(), "web*:fbt::vfs_*:entry");
  EXPECT_TRUE(is_for(every, "db"));
  EXPECT_TRUE(is_for(every, "")) << "without a machine";
  EXPECT_TRUE(is_for(some, "web1"));
  EXPECT_FALSE(is_for(some, "db"));
  EXPECT_FALSE(is_for(some, ""));
}

}  // namespace
}  // namespace ringside::dif
