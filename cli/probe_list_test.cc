#include "cli/probe_list.h"

#include <gtest/gtest.h>

namespace ringside::cli {
namespace {

TEST(ProbeList, HasDtracesColumns) {
  const providers::Probe probe{dif::ProbeId{42}, {"fbt", "vmlinux", "vfs_read", "entry"}};

  EXPECT_EQ(probe_list_header() + probe_list_line(probe),
            "   ID   PROVIDER            MODULE                          FUNCTION NAME\n"
            "   42        fbt           vmlinux                          vfs_read entry\n");
}

TEST(ProbeList, ArgumentTypesAreCsSpelling) {
  TypeGraph types;
  const TypeId integer = *types.find("int");
  const providers::ProbeArguments arguments{true, {types.pointer_to(integer)}, {""}};

  EXPECT_EQ(probe_list_arguments(arguments, types), "\n\tArgument Types\n\t\targs[0]: int *\n\n");
  EXPECT_EQ(probe_list_arguments({true, {}, {}}, types), "\n\tArgument Types\n\t\tNone\n\n");
  EXPECT_EQ(probe_list_arguments({}, types),
            "\n\tArgument Types\n\t\tunknown (use arg0 to arg9)\n\n");
}

TEST(ProbeList, RefusedOnesDoNotLookLikeProbes) {
  EXPECT_EQ(refusal_list({}), "");
  EXPECT_EQ(refusal_list({{{"fbt", "vmlinux", "do_idle", "entry"}, "do_idle has no ftrace site"}}),
            "\n\tNot probes, each with its reason\n"
            "\t\tfbt:vmlinux:do_idle:entry: do_idle has no ftrace site\n\n");
}

}  // namespace
}  // namespace ringside::cli
