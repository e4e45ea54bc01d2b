#include "cli/environment.h"

#include <gtest/gtest.h>

#include "cli/fake_tracer_for_tests.h"

namespace ringside::cli {
namespace {

TEST(Environment, SignatureIsTheFirstProbesAndTheCountOfAll) {
  FakeTracer tracer;
  tracer.add({"fbt", "vmlinux", "vfs_read", "entry"});
  tracer.add({"fbt", "vmlinux", "vfs_write", "entry"});
  tracer.arguments_known = true;
  TracerEnvironment environment(tracer, nullptr);

  const d::ProbeSignature both = environment.signature({"fbt", "", "vfs_*", ""});
  const d::ProbeSignature none = environment.signature({"nonesuch", "", "", ""});

  EXPECT_EQ(both.matched, 2u);
  EXPECT_TRUE(both.has_types);
  EXPECT_EQ(both.first.function, "vfs_read");
  EXPECT_EQ(none.matched, 0u);
  EXPECT_FALSE(none.has_types);
}

TEST(Environment, PatternsAreLookedUpOnce) {
  FakeTracer tracer;
  tracer.add({"dtrace", "", "", "BEGIN"});
  TracerEnvironment environment(tracer, nullptr);

  environment.signature({"", "", "", "BEGIN"});
  environment.signature({"", "", "", "BEGIN"});

  EXPECT_EQ(tracer.lookups, 1);
}

TEST(Environment, WithoutAGuestThereAreTypesButNoSymbols) {
  FakeTracer tracer;
  TracerEnvironment environment(tracer, nullptr);

  EXPECT_TRUE(environment.types().find("int"));
  EXPECT_FALSE(environment.kernel_variable("", "jiffies"));
}

}  // namespace
}  // namespace ringside::cli
