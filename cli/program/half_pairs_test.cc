#include "cli/program/half_pairs.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringside::cli {
namespace {

using Description = dif::ProbeDescription;

Description probe(const std::string& function, const std::string& name) {
  return {"fbt", "vmlinux", function, name};
}

TEST(HalfPairs, AreFunctionsOfWhichAWantedEndIsMissing) {
  HalfPairs pairs;
  for (const char* name : {"entry", "return"}) pairs.add(probe("whole", name));
  pairs.add(probe("never_returns", "entry"));
  pairs.add(probe("static_call", "return"));

  const auto found = pairs.find(std::vector<Description>{{"fbt", "", "", ""}});

  EXPECT_EQ(found.count, 2u);
  EXPECT_EQ(found.first, probe("never_returns", "return"));
}

TEST(HalfPairs, AnEndThatNobodyAsksForIsNotMissed) {
  HalfPairs pairs;
  pairs.add(probe("vfs_read", "entry"));
  pairs.add(probe("vfs_write", "return"));
  pairs.add({"profile", "", "", "tick-1s"});

  const auto found = pairs.find(
      std::vector<Description>{{"fbt", "", "", "entry"}, {"fbt", "", "vfs_write", "return"}});

  EXPECT_EQ(found.count, 1u);
  EXPECT_EQ(found.first, probe("vfs_write", "entry"));
}

TEST(HalfPairs, OfSeveralFunctionsOfOneNameEachHasTwoEnds) {
  HalfPairs pairs;
  for (const char* name : {"entry", "entry", "return"}) pairs.add(probe("twin", name));

  EXPECT_EQ(pairs.find(std::vector<Description>{{}}).count, 1u);
}

}  // namespace
}  // namespace ringside::cli
