#include "cli/session/bind_script.h"

#include <gtest/gtest.h>

#include <vector>

#include "cli/options/option_values.h"

namespace ringside::cli {
namespace {

using Description = dif::ProbeDescription;

Description probe(const std::string& function, const std::string& name) {
  return {"fbt", "vmlinux", function, name};
}

TEST(UnpairedProbes, AreFunctionsOfWhichAWantedEndIsMissing) {
  UnpairedProbes unpaired;
  for (const char* name : {"entry", "return"}) unpaired.add(probe("whole", name));
  unpaired.add(probe("never_returns", "entry"));
  unpaired.add(probe("static_call", "return"));

  const auto found = unpaired.find(std::vector<Description>{{"fbt", "", "", ""}});

  EXPECT_EQ(found.count, 2u);
  EXPECT_EQ(found.first, probe("never_returns", "return"));
}

TEST(UnpairedProbes, AnEndThatNobodyAsksForIsNotMissed) {
  UnpairedProbes unpaired;
  unpaired.add(probe("vfs_read", "entry"));
  unpaired.add(probe("vfs_write", "return"));
  unpaired.add({"profile", "", "", "tick-1s"});

  const auto found = unpaired.find(
      std::vector<Description>{{"fbt", "", "", "entry"}, {"fbt", "", "vfs_write", "return"}});

  EXPECT_EQ(found.count, 1u);
  EXPECT_EQ(found.first, probe("vfs_write", "entry"));
}

TEST(UnpairedProbes, OfSeveralFunctionsOfOneNameEachHasTwoEnds) {
  UnpairedProbes unpaired;
  for (const char* name : {"entry", "entry", "return"}) unpaired.add(probe("twin", name));

  EXPECT_EQ(unpaired.find(std::vector<Description>{{}}).count, 1u);
}

TEST(BufferSizes, AreWrittenAsDtraceDoes) {
  EXPECT_EQ(size_text(128 << 20), "128m");
  EXPECT_EQ(size_text(1 << 30), "1g");
  EXPECT_EQ(size_text(1536), "1536");
  EXPECT_EQ(size_text(3 << 10), "3k");
}

TEST(BufferSizes, ThatWereLoweredAreNamed) {
  EXPECT_EQ(lowered_text({dif::BufferKind::Principal, 2 << 20}), "buffer size lowered to 2m");
  EXPECT_EQ(lowered_text({dif::BufferKind::Aggregation, 512 << 10}),
            "aggregation size lowered to 512k");
}

}  // namespace
}  // namespace ringside::cli
