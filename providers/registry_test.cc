#include "providers/registry.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "providers/builtin.h"
#include "providers/profile/profile.h"

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

TEST(Registry, AProviderThatIsNotHereHasAReasonForWhoNamesIt) {
  HostProviders host;
  std::vector<Refusal> refused;
  const auto collect = [&](const Refusal& one) { refused.push_back(one); };

  ASSERT_TRUE(host.registry.refusals({"cpc", "", "", "PAPI_tot_ins-all-10000"}, collect));
  ASSERT_TRUE(host.registry.refusals({"", "", "", ""}, collect));
  ASSERT_TRUE(host.registry.refusals({"pid1", "", "", "entry"}, collect));

  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].name.to_string(), "cpc:::PAPI_tot_ins-all-10000");
  EXPECT_TRUE(refused[0].reason.starts_with("the host's counters fire no probes: perf stat"));
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

/// Three probes that come and go, of which the last cannot be enabled.
class Switches : public Provider {
 public:
  Switches() : Provider("switch", {}) {}
  std::uint32_t id_count() const override { return 3; }
  Probe at(std::uint32_t index) const { return {id_at(index), {"switch", "", "", "probe"}}; }
  Result<void> provide(const dif::ProbeDescription&, const Visitor& visit) override {
    for (std::uint32_t index = 0; index < id_count(); ++index) visit(at(index));
    return {};
  }
  Result<std::optional<Probe>> by_id(dif::ProbeId) override { return std::optional<Probe>(); }
  ProbeArguments arguments(const Probe&) override { return {}; }
  Result<void> enable(const Probe& probe) override {
    if (probe.id == at(2).id) return fail(ErrorCode::Unsupported, "this one cannot be");
    on.insert(probe.id);
    return {};
  }
  bool is_enabled(dif::ProbeId id) const override { return on.contains(id); }
  void note_disabled(dif::ProbeId id) override { on.erase(id); }

  std::set<dif::ProbeId> on;
};

struct SwitchedProviders : HostProviders {
  SwitchedProviders() {
    auto added = std::make_unique<Switches>();
    switches = added.get();
    registry.add(std::move(added));
  }
  Switches* switches;
};

/// Would have to look far for what matches.
class Far final : public Switches {
 public:
  bool is_for_the_rest() const override { return true; }
  bool may_match(std::string_view pattern) const override { return pattern.ends_with('*'); }
};

TEST(Registry, AProviderForTheRestIsAskedForWhatNoOtherMayMatch) {
  HostProviders host;
  host.registry.add(std::make_unique<Far>());
  EXPECT_EQ(host.matching({"postgresql*", "", "", ""}).size(), 3u);
  EXPECT_EQ(host.matching({"dtr*", "", "", ""}).size(), 3u) << "dtrace's alone";
  EXPECT_EQ(host.matching({"", "", "", "BEGIN"}).size(), 1u);
}

TEST(Registry, WhileTracingRunsOnlyThoseAreEnabledThatAreNotYet) {
  SwitchedProviders host;
  const std::vector<Probe> both{host.switches->at(0), host.switches->at(1)};
  ASSERT_TRUE(host.registry.enable(both[0]));

  const auto fresh = host.registry.enable_more(both);

  ASSERT_TRUE(fresh);
  ASSERT_EQ(fresh->size(), 1u);
  EXPECT_EQ((*fresh)[0].id, both[1].id);
  EXPECT_TRUE(host.registry.disable(both));
  EXPECT_TRUE(host.switches->on.empty());
}

TEST(Registry, WhileTracingRunsAllAreEnabledOrNone) {
  SwitchedProviders host;
  const Probe before = host.switches->at(0);
  ASSERT_TRUE(host.registry.enable(before));

  const std::vector<Probe> all{before, host.switches->at(1), host.switches->at(2)};
  EXPECT_FALSE(host.registry.enable_more(all));

  EXPECT_EQ(host.switches->on, std::set{before.id}) << "as it was";
}

TEST(Registry, BeginIsNotChangedWhileTracingRuns) {
  SwitchedProviders host;
  const std::vector<Probe> probes{host.switches->at(0), {{1}, {"dtrace", "", "", "BEGIN"}}};

  const auto fresh = host.registry.enable_more(probes);

  ASSERT_FALSE(fresh);
  EXPECT_EQ(fresh.error().code, ErrorCode::Unsupported);
  EXPECT_EQ(fresh.error().message,
            "BEGIN fires once, when tracing begins: it is enabled before that, or not at all");
  EXPECT_TRUE(host.switches->on.empty());
  ASSERT_TRUE(host.registry.enable(probes[0]));
  EXPECT_FALSE(host.registry.disable(probes));
  EXPECT_TRUE(host.switches->is_enabled(probes[0].id)) << "none of them";
}

TEST(Registry, WhileTracingRunsTimersAndEndComeAndGo) {
  HostProviders host;
  std::vector<Probe> probes = host.matching({"profile", "", "", "profile-97"});
  probes.push_back({{2}, {"dtrace", "", "", "END"}});

  ASSERT_TRUE(host.registry.enable_more(probes));
  EXPECT_EQ(host.builtin->end(), dif::ProbeId{2});
  EXPECT_TRUE(host.profile->has_samples());
  ASSERT_TRUE(host.registry.disable(probes));

  EXPECT_FALSE(host.builtin->end());
  EXPECT_TRUE(host.profile->enabled().empty());
  EXPECT_FALSE(host.profile->has_samples());
}

}  // namespace
}  // namespace ringside::providers
