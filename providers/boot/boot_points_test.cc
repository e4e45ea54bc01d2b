#include "providers/boot/boot_points.h"

#include <gtest/gtest.h>

#include "providers/boot/fake_file_kernel.h"

namespace ringside::providers {
namespace {

class BootPointsTest : public testing::Test {
 protected:
  void SetUp() override {
    first_ = kernel_.function("first");
    second_ = kernel_.function("second");
    kernel_.seal();
  }
  static GuestVirt entry(GuestVirt function) {
    return GuestVirt(function.raw() + FakeFileKernel::kNop);
  }
  Result<ProbeSite> check(GuestVirt at) { return points_.examine(at, SitePolicy::Normal); }
  Result<void> bind(GuestVirt at, const Binding& binding) {
    return points_.bind(TRY(check(at)), binding);
  }
  std::string refusal(GuestVirt at) {
    const auto done = check(at);
    return done ? "" : done.error().message;
  }

  FakeMemory memory_;
  FakeFileKernel kernel_{memory_};
  BootPoints points_{kernel_};
  GuestVirt first_{0}, second_{0};
};

TEST_F(BootPointsTest, StandOnText) {
  EXPECT_TRUE(check(entry(first_)));
  EXPECT_NE(refusal(kernel_address(kTask)).find("not in the kernel's text"), std::string::npos);
}

TEST_F(BootPointsTest, DoNotStandWhereNoExceptionCanBeTaken) {
  kernel_.forbidden = {{first_, second_}};

  EXPECT_NE(refusal(entry(first_)).find("cannot take a breakpoint"), std::string::npos);
  EXPECT_TRUE(check(entry(second_)));
}

TEST_F(BootPointsTest, DoNotStandOnAnyByteThatTheKernelPatchesForEver) {
  // The entry's instruction has five bytes; its last one is patched.
  kernel_.patched = {{GuestVirt(first_.raw() + FakeFileKernel::kNop + 4), 2, "static call"}};

  EXPECT_NE(refusal(entry(first_)).find("static call, which the kernel patches"),
            std::string::npos);
  EXPECT_TRUE(check(first_)) << "the nop before it";
}

TEST_F(BootPointsTest, KnowWhenEachMayStand) {
  kernel_.boot_patches = {{{entry(second_), 3, "alternative"}}};
  kernel_.init = {{first_, second_}};

  ASSERT_TRUE(bind(entry(second_), {dif::ProbeId{7}}));
  ASSERT_TRUE(bind(entry(first_), {dif::ProbeId{8}}));
  ASSERT_TRUE(bind(entry(second_), {dif::ProbeId{9}}));

  const auto& points = points_.points();
  ASSERT_EQ(points.size(), 2u) << "one place, however many probes";
  EXPECT_EQ(points[0].address, entry(second_));
  EXPECT_TRUE(points[0].patched_at_boot && !points[0].is_init);
  EXPECT_TRUE(!points[1].patched_at_boot && points[1].is_init);
  EXPECT_TRUE(points_.has_point(entry(first_)));
  EXPECT_FALSE(points_.has_point(first_));
}

TEST_F(BootPointsTest, AreAllChosenBeforeTracingBegins) {
  ASSERT_TRUE(bind(entry(second_), {dif::ProbeId{7}}));

  const DispatchTable::Change first = points_.take_bound();

  ASSERT_EQ(first.added.size(), 1u);
  EXPECT_EQ(first.added[0].at, entry(second_));
  EXPECT_EQ(first.added[0].binding.probe, dif::ProbeId{7});
  const auto late = bind(entry(first_), {dif::ProbeId{8}});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::Unsupported);
}

TEST_F(BootPointsTest, WaitForEveryPatchWhereNoneIsKnown) {
  kernel_.boot_patches = std::nullopt;

  ASSERT_TRUE(bind(entry(first_), {dif::ProbeId{7}}));

  EXPECT_TRUE(points_.points()[0].patched_at_boot);
  EXPECT_FALSE(points_.marker("second"));
}

TEST_F(BootPointsTest, MarkAFunctionBehindItsFtraceSite) {
  EXPECT_EQ(points_.marker("second"), entry(second_));
  EXPECT_FALSE(points_.marker("third"));

  kernel_.boot_patches = {{{entry(second_), 1, "lock prefix"}}};
  EXPECT_FALSE(points_.marker("second")) << "its byte will be rewritten";
}

}  // namespace
}  // namespace ringside::providers
