#include "providers/registry.h"

#include <gtest/gtest.h>

#include "providers/builtin.h"
#include "providers/profile.h"

namespace ringside::providers {
namespace {

struct HostProviders {
  Registry registry;
  BuiltinProvider* builtin;
  ProfileProvider* profile;

  HostProviders() {
    auto one = std::make_unique<BuiltinProvider>();
    auto two = std::make_unique<ProfileProvider>();
    builtin = one.get();
    profile = two.get();
    registry.add(std::move(one));
    registry.add(std::move(two));
  }

  std::vector<Probe> matching(const dif::ProbeDescription& pattern) {
    std::vector<Probe> found;
    const auto done = registry.for_each(pattern, [&](const Probe& p) { found.push_back(p); });
    EXPECT_TRUE(done.has_value());
    return found;
  }
};

TEST(Registry, BeginEndAndErrorAreProbesOneTwoAndThree) {
  HostProviders host;

  const auto found = host.matching({"dtrace", "", "", ""});

  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].id.value, 1u);
  EXPECT_EQ(found[0].name.to_string(), "dtrace:::BEGIN");
  EXPECT_EQ(found[1].name.to_string(), "dtrace:::END");
  EXPECT_EQ(found[2].id.value, 3u);
  EXPECT_EQ(found[2].name.to_string(), "dtrace:::ERROR");
}

TEST(Registry, ANamedTimerIsPublishedBecauseItIsAskedFor) {
  HostProviders host;

  EXPECT_EQ(host.matching({"profile", "", "", "tick-3s"}).size(), 1u);
  EXPECT_EQ(host.matching({"", "", "", "profile-313"}).size(), 1u);
  EXPECT_EQ(host.matching({"profile", "", "", "tick-*s"}).size(), 1u) << "globs publish nothing";
  EXPECT_EQ(host.matching({"profile", "vmlinux", "", "tick-4s"}).size(), 0u);
}

TEST(Registry, ATimerThatIsTooFastMatchesNothingAndHasAReason) {
  HostProviders host;

  EXPECT_TRUE(host.matching({"", "", "", "profile-5001"}).empty());
  EXPECT_TRUE(host.matching({"", "", "", "tick-1parsec"}).empty());

  std::vector<Refusal> refused;
  const auto collect = [&](const Refusal& one) { refused.push_back(one); };
  ASSERT_TRUE(host.registry.refusals({"", "", "", "profile-5001"}, collect));
  ASSERT_TRUE(host.registry.refusals({"", "", "", "profile-4999"}, collect));
  ASSERT_TRUE(host.registry.refusals({"", "", "", "entry"}, collect));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].name.to_string(), "profile:::profile-5001");
  EXPECT_EQ(refused[0].reason, "timers fire at most 5000 times a second (every 200us)");
}

TEST(Registry, AnIdLeadsBackToItsProbe) {
  HostProviders host;
  for (const Probe& probe : host.matching({})) {
    const auto found = host.registry.by_id(probe.id);
    ASSERT_TRUE(found && *found) << probe.name.to_string();
    EXPECT_EQ((*found)->name, probe.name);
  }

  const auto none = host.registry.by_id({999'999});
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

TEST(Registry, AProbesStabilityIsItsProviders) {
  HostProviders host;
  const auto tick = host.matching({"profile", "", "", "tick-2s"});
  ASSERT_EQ(tick.size(), 1u);

  const auto begin = host.registry.attributes({{1}, {"dtrace", "", "", "BEGIN"}});
  EXPECT_EQ(to_string(begin.provider), "Stable/Stable/Common");
  EXPECT_EQ(to_string(begin.module), "Private/Private/Unknown");
  EXPECT_EQ(to_string(begin.arguments), "Stable/Stable/Common");
  const auto timer = host.registry.attributes(tick[0]);
  EXPECT_EQ(to_string(timer.name), "Evolving/Evolving/Common");
  EXPECT_EQ(to_string(timer.module), "Unstable/Unstable/Unknown");
  EXPECT_EQ(to_string(timer.function), "Private/Private/Unknown");
  const auto unknown = host.registry.attributes({{999'999}, {}});
  EXPECT_EQ(to_string(unknown.provider), "Private/Private/Unknown");
}

TEST(Registry, KnowsItsProvidersByTheirWholeNames) {
  HostProviders host;

  EXPECT_TRUE(host.registry.has("dtrace"));
  EXPECT_TRUE(host.registry.has("profile"));
  EXPECT_FALSE(host.registry.has("prof"));
  EXPECT_FALSE(host.registry.has("fbt")) << "there is no guest";
}

TEST(Registry, EnablingTwiceIsEnablingOnce) {
  HostProviders host;
  const auto tick = host.matching({"profile", "", "", "tick-2s"});
  ASSERT_EQ(tick.size(), 1u);

  EXPECT_FALSE(host.builtin->begin());
  ASSERT_TRUE(host.registry.enable({{1}, {"dtrace", "", "", "BEGIN"}}));
  ASSERT_TRUE(host.registry.enable(tick[0]));
  ASSERT_TRUE(host.registry.enable(tick[0]));

  EXPECT_EQ(host.builtin->begin(), dif::ProbeId{1});
  EXPECT_FALSE(host.builtin->end());
  ASSERT_EQ(host.profile->enabled().size(), 1u);
  EXPECT_EQ(host.profile->enabled()[0].interval, 2'000'000'000u);
}

TEST(Registry, EnablingAnUnknownIdIsAnError) {
  HostProviders host;

  const auto done = host.registry.enable({{999'999}, {}});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace ringside::providers
