#include "vmm/base/similar_name.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace ringside {
namespace {

std::string nearest(std::string_view typed, std::initializer_list<std::string_view> names) {
  return similar_name(typed, names, [](std::string_view name) { return name; });
}

TEST(EditDistance, CountsEachKindOfMistakeOnce) {
  EXPECT_EQ(edit_distance("vfs_read", "vfs_read", 9), 0U);
  EXPECT_EQ(edit_distance("vfs_raed", "vfs_read", 9), 1U);  // swapped
  EXPECT_EQ(edit_distance("vfs_red", "vfs_read", 9), 1U);   // left out
  EXPECT_EQ(edit_distance("vfs_reead", "vfs_read", 9), 1U);
  EXPECT_EQ(edit_distance("vfs_rxad", "vfs_read", 9), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting", 9), 3U);
  EXPECT_EQ(edit_distance("", "abc", 9), 3U);
  EXPECT_EQ(edit_distance("ca", "abc", 9), 3U);  // 2 where a letter may be moved twice
}

TEST(EditDistance, TakesUpperAndLowerCaseForTheSame) {
  EXPECT_EQ(edit_distance("begin", "BEGIN", 9), 0U);
  EXPECT_EQ(edit_distance("BGEIN", "begin", 9), 1U);
}

TEST(EditDistance, IsTheSameBothWays) {
  for (const auto& [a, b] : {std::pair{"coutn", "count"}, {"open", "openat"}, {"abcd", "badc"}}) {
    EXPECT_EQ(edit_distance(a, b, 9), edit_distance(b, a, 9)) << a;
  }
}

TEST(EditDistance, EndsAtItsBound) {
  EXPECT_EQ(edit_distance("kitten", "sitting", 3), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting", 2), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting", 0), 1U);
  EXPECT_EQ(edit_distance("aaaaaaaa", "bbbbbbbb", 2), 3U);
}

TEST(EditDistance, ComparesNamesUpToItsLimit) {
  const std::string long_one(128, 'a');

  EXPECT_EQ(edit_distance(long_one, std::string(127, 'a') + 'b', 5), 1U);
  EXPECT_EQ(edit_distance(long_one + 'a', long_one + 'a', 5), 6U);
}

TEST(SimilarName, IsTheNearestOne) {
  EXPECT_EQ(nearest("vfs_raed", {"vfs_readv", "vfs_read", "vfs_write"}), "vfs_read");
  EXPECT_EQ(nearest("coutn", {"sum", "count", "counts"}), "count");
  EXPECT_EQ(nearest("begin", {"END", "BEGIN"}), "BEGIN");
  EXPECT_EQ(nearest("whyy", {"vms", "why"}), "why");
}

TEST(SimilarName, OfTwoThatAreAsNearBeginsMoreLikeTheTypedOne) {
  EXPECT_EQ(nearest("opena", {"open", "openat", "opened_by"}), "openat");
  EXPECT_EQ(nearest("lpen", {"open", "lpez"}), "lpez");
  EXPECT_EQ(nearest("cat", {"car", "cap"}), "cap");
  EXPECT_EQ(nearest("prinft", {"print", "printf"}), "printf") << "which is as long";
}

TEST(SimilarName, IsNoneWhereMoreThanAThirdIsWrong) {
  EXPECT_EQ(nearest("web1", {"database", "mail"}), "");
  EXPECT_EQ(nearest("xyz", {"abc", "xbc"}), "");
  EXPECT_EQ(nearest("x", {"y", "xy"}), "");
  EXPECT_EQ(nearest("", {"a", ""}), "");
  EXPECT_EQ(nearest("same", {"same"}), "");
}

TEST(DidYouMean, FollowsAMessage) {
  EXPECT_EQ(did_you_mean("count"), "; did you mean count?");
  EXPECT_EQ(did_you_mean("count", "@"), "; did you mean @count?");
  EXPECT_EQ(did_you_mean(""), "");
  EXPECT_EQ(did_you_mean("", "@"), "");
}

}  // namespace
}  // namespace ringside
