// Static tracepoints and counters of live kernels: how many of them can be probed, how each stands,
// and how much of a processor's time it takes to find out. tests/vm/test_sdt.py and
// test_counters.py check that they fire as they should.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cli/program/defined_probes.h"
#include "cli/program/libraries.h"
#include "providers/sdt/sdt.h"
#include "providers/stable/stable_provider.h"
#include "providers/trap_points/sites/original_text.h"
#include "providers/trap_points/sites/site_examiner.h"
#include "tests/live/live_guest.h"
#include "tests/live/no_trap_points.h"

namespace ringside::live {
namespace {

/// Of this thread, in ms: machines are shared.
double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// Examines places, and arms none.
class Places final : public providers::ProbePoints {
 public:
  Places(const providers::OriginalText& text, const guest_linux::Kernel& kernel)
      : no_search_(fail(ErrorCode::Unsupported, "no place here is one whose fault is mended")),
        examiner_(text, kernel, std::nullopt, no_search_) {
    examiner_.find_functions_without_idt();
  }
  Result<providers::ProbeSite> examine(GuestVirt at, providers::SitePolicy policy) override {
    return examiner_.examine(at, policy);
  }
  Result<void> bind(const providers::ProbeSite&, const providers::Binding&) override { return {}; }

 private:
  const Result<GuestVirt> no_search_;
  providers::SiteExaminer examiner_;
};

class LiveStaticTracepoints : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto image = find_live_image(GetParam());
    if (!image) GTEST_SKIP() << image.error().message;
    auto guest = LiveGuest::boot(*image, 2);
    ASSERT_TRUE(guest) << guest.error().message;
    guest_ = std::move(*guest);
    reader_.emplace(guest_->machine().memory(), guest_->kernel().table());
    text_.emplace(*reader_, nothing_, guest_->kernel());
    places_.emplace(*text_, guest_->kernel());
  }

  NoTrapPoints nothing_;
  std::unique_ptr<LiveGuest> guest_;
  std::optional<vmm::PageTableReader> reader_;
  std::optional<providers::OriginalText> text_;
  std::optional<Places> places_;
};

TEST_P(LiveStaticTracepoints, NearlyAllCanBeProbedAtAllTheirSites) {
  const dif::ProbeDescription all{"sdt", "", "", ""};
  const auto elapsed = [start = processor_time()] { return processor_time() - start; };
  std::size_t some = 0, whole = 0, typed = 0, refused = 0;

  providers::SdtProvider provider(*text_, guest_->kernel(), *places_);
  EXPECT_TRUE(provider.provide({"sdt", "", "", "none"}, [](const auto&) {}));
  const double listed = elapsed();
  EXPECT_TRUE(provider.provide(all, [&](const providers::Probe& probe) {
    ++some;
    if (provider.detail(probe).find("not probed") == std::string::npos) ++whole;
    if (provider.arguments(probe).known) ++typed;
  }));
  const double prepared = elapsed() - listed;
  std::map<std::string, std::size_t> reasons;
  EXPECT_TRUE(provider.refusals(all, [&](const providers::Refusal& refusal) {
    ++reasons[refusal.reason];
    if (refusal.reason.find("no code") == std::string::npos) ++refused;
  }));

  for (const auto& [reason, times] : reasons) std::cout << fmt::format("{:>5} {}\n", times, reason);
  std::cout << fmt::format(
      "{} of {} at all sites, {:.1f} %, {} at some; {:.0f} ms to read them, "
      "{:.0f} ms to prepare all\n",
      whole, some + refused,
      100.0 * static_cast<double>(whole) / static_cast<double>(some + refused), some, listed,
      prepared);
  EXPECT_GT(whole, 600u);
  EXPECT_GE(whole * 100, (some + refused) * 92);
  EXPECT_EQ(typed, some);
}

TEST_P(LiveStaticTracepoints, CountersAreFoundInTheText) {
  const auto libraries = cli::load_libraries({}, D_LIBRARY_FOLDER, cli::LibraryReader::Tracer);
  ASSERT_TRUE(libraries) << libraries.error().message;
  const auto defined = cli::read_defined_probes(
      std::make_shared<const std::vector<d::LibrarySource>>(*libraries), guest_->kernel(), false);
  ASSERT_TRUE(defined) << defined.error().message;
  const auto shared = std::make_shared<providers::StableProvider::Shared>(
      *defined, *text_, guest_->kernel(), *places_);
  const double begin = processor_time();
  std::size_t found = 0, counters = 0;

  for (const std::string name : {"vminfo", "sysinfo", "mib"}) {
    providers::StableProvider provider(name, shared, guest_->kernel(), *places_);
    EXPECT_TRUE(provider.provide({name, "", "", ""}, [&](const providers::Probe&) { ++found; }));
  }
  for (const dif::ProbeDefinition& probe : (*defined)->probes) {
    if (probe.place.kind == dif::ProbePlace::Kind::Counter) ++counters;
  }

  std::cout << fmt::format("{} probes of vminfo, sysinfo and mib in {:.0f} ms\n", found,
                           processor_time() - begin);
  EXPECT_GT(counters, 60u);
  EXPECT_GT(found, counters);
}

std::string image_name(const testing::TestParamInfo<const char*>& info) {
  return std::string(info.param) == "debian-6.1" ? "debian_6_1" : "debian_6_12";
}
INSTANTIATE_TEST_SUITE_P(Images, LiveStaticTracepoints,
                         testing::Values("debian-6.1", "debian-6.12"), image_name);

}  // namespace
}  // namespace ringside::live
