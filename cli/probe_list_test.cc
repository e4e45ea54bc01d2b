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

TEST(ProbeList, DetailsHaveDtracesLayout) {
  TypeGraph types;
  const providers::ProbeArguments arguments{true, {types.pointer_to(*types.find("int"))}, {""}};
  const dif::ProbeDescription name{"fbt", "", "vfs_read", "entry"};
  dif::ProviderAttributes attributes;
  attributes.module.data = dif::Stability::Private;  // of a field that the name has not
  attributes.function.name = dif::Stability::Private;
  attributes.arguments = {dif::Stability::Evolving, dif::Stability::Evolving,
                          dif::DependencyClass::Isa};
  const std::string before =
      "\n\tProbe Description Attributes\n"
      "\t\tIdentifier Names: Private\n"
      "\t\tData Semantics:   Stable\n"
      "\t\tDependency Class: Common\n"
      "\n\tArgument Attributes\n"
      "\t\tIdentifier Names: Evolving\n"
      "\t\tData Semantics:   Evolving\n"
      "\t\tDependency Class: ISA\n"
      "\n\tArgument Types\n";

  EXPECT_EQ(probe_list_details(name, attributes, arguments, types),
            before + "\t\targs[0]: int *\n\n");
  EXPECT_EQ(probe_list_details(name, attributes, {}, types), before + "\t\tNone\n\n");
}

TEST(ProbeList, RefusedOnesDoNotLookLikeProbes) {
  EXPECT_EQ(refusal_list({}), "");
  EXPECT_EQ(refusal_list({{{"fbt", "vmlinux", "do_idle", "entry"}, "do_idle has no ftrace site"}}),
            "\n\tNot probes, each with its reason\n"
            "\t\tfbt:vmlinux:do_idle:entry: do_idle has no ftrace site\n\n");
}

}  // namespace
}  // namespace ringside::cli
