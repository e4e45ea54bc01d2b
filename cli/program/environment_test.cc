#include "cli/program/environment.h"

#include <gtest/gtest.h>

#include "cli/program/fake_tracer_for_tests.h"

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

TEST(Environment, TellsWhyWhatIsThereCannotBeProbed) {
  FakeTracer tracer;
  tracer.refused = {{{"fbt", "vmlinux", "do_idle", "entry"}, "do_idle has no ftrace site"},
                    {{"fbt", "vmlinux", "do_idle", "return"}, "it never returns"}};
  TracerEnvironment environment(tracer, nullptr);

  EXPECT_EQ(environment.why_no_match({"fbt", "", "do_idle", "return"}),
            "fbt:vmlinux:do_idle:return cannot be probed: it never returns");
  EXPECT_EQ(environment.why_no_match({"fbt", "", "do_idle", ""}),
            "fbt:vmlinux:do_idle:entry cannot be probed: do_idle has no ftrace site (and 1 more; "
            "see -l -v)");
  EXPECT_EQ(environment.why_no_match({"", "", "do_nothing", ""}), "");
  EXPECT_EQ(environment.why_no_match({"fbt", "vmlinux", "do_idle", "return"}), "it never returns")
      << "whose name the user has just written";
  EXPECT_EQ(environment.why_no_match({"fbt", "", "do_nothing", ""}),
            "there is no guest; name one with --attach, --image or --kernel");
}

TEST(Environment, WithoutAGuestEachProviderOfGuestsSaysSo) {
  FakeTracer tracer;
  TracerEnvironment environment(tracer, nullptr);

  for (const char* name : {"fbt", "instr", "sdt", "syscall", "proc", "sched", "io", "ip", "tcp",
                           "udp", "lockstat", "vminfo", "sysinfo", "mib"}) {
    EXPECT_EQ(environment.why_no_match({name, "", "", "something"}),
              "there is no guest; name one with --attach, --image or --kernel")
        << name;
  }
  EXPECT_EQ(environment.why_no_match({"profile", "", "", "something"}), "");
}

TEST(Environment, TellsThatAProbeIsThereUnderNoModuleOfAnotherSystem) {
  FakeTracer tracer;
  tracer.add({"io", "vmlinux", "submit_bio", "start"});
  TracerEnvironment environment(tracer, nullptr);

  EXPECT_EQ(environment.why_no_match({"io", "sd", "", "start"}),
            "io:::start does; modules and functions are this kernel's own: leave them empty");
  EXPECT_EQ(environment.why_no_match({"io", "sd", "", "finish"}),
            "there is no guest; name one with --attach, --image or --kernel");
}

TEST(Environment, ADescriptionWithOneFieldMisspelledIsAnsweredWithTheProbeThatIsMeant) {
  FakeTracer tracer;
  tracer.add({"dtrace", "", "", "BEGIN"});
  tracer.add({"fbt", "vmlinux", "vfs_read", "entry"});
  tracer.add({"fbt", "vmlinux", "vfs_read", "return"});
  tracer.add({"fbt", "ext4", "ext4_read", "entry"});
  TracerEnvironment environment(tracer, nullptr);
  const std::pair<dif::ProbeDescription, std::string_view> cases[] = {
      {{"ftb", "", "vfs_read", "entry"}, "did you mean fbt::vfs_read:entry?"},
      {{"", "", "vfs_raed", "entry"}, "did you mean ::vfs_read:entry?"},
      {{"", "", "vfs_read", "entyr"}, "did you mean ::vfs_read:entry?"},
      {{"", "vmlinxu", "vfs_read", "entry"}, "did you mean :vmlinux:vfs_read:entry?"},
      {{"", "", "", "begin"}, "did you mean :::BEGIN?"},
      {{"dtrace", "", "", "BEGN"}, "did you mean dtrace:::BEGIN?"},
      {{"dtrace", "", "", "nothing"}, ""},
      {{"", "", "xyzzy", "entry"}, ""},
      {{"", "", "vfs_raed*", "entry"}, ""},
      {{"nonesuch", "", "vfs_read", "entry"}, ""},
  };
  for (const auto& [pattern, said] : cases) {
    EXPECT_EQ(environment.why_no_match(pattern), said) << pattern.to_string();
  }
}

TEST(Environment, ASystemCallIsFoundByTheNameThatProgramsKnow) {
  FakeTracer tracer;
  for (const char* name : {"newfstat", "fstatfs", "statx", "pread64", "openat", "open"}) {
    tracer.add({"syscall", "vmlinux", name, "entry"});
  }
  TracerEnvironment environment(tracer, nullptr);

  EXPECT_EQ(environment.similar({"syscall", "", "fstat", ""}), "did you mean syscall::newfstat:?");
  EXPECT_EQ(environment.similar({"syscall", "", "pread", "entry"}),
            "did you mean syscall::pread64:entry?");
  EXPECT_EQ(environment.similar({"syscall", "", "opena", "entry"}),
            "did you mean syscall::openat:entry?");
}

TEST(Environment, WithoutAGuestThereAreTypesButNoSymbols) {
  FakeTracer tracer;
  TracerEnvironment environment(tracer, nullptr);

  EXPECT_TRUE(environment.types().find("int"));
  EXPECT_FALSE(environment.kernel_variable("", "jiffies"));
}

}  // namespace
}  // namespace ringside::cli
