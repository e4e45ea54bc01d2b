#include "cli/program/probe_list.h"

#include <gtest/gtest.h>

namespace ringside::cli {
namespace {

TEST(ProbeList, HasDtracesColumns) {
  const providers::Probe probe{dif::ProbeId{42}, {"fbt", "vmlinux", "vfs_read", "entry"}};

  EXPECT_EQ(probe_list_header() + probe_list_line(probe),
            "   ID   PROVIDER            MODULE                          FUNCTION NAME\n"
            "   42        fbt           vmlinux                          vfs_read entry\n");
}

TEST(ProbeList, DetailsAreArgumentsWithTheirNamesThenStability) {
  TypeGraph types;
  const providers::ProbeArguments arguments{
      true,
      {types.pointer_to(*types.find("int")), *types.find("size_t"), *types.find("int")},
      {"where", "count", ""},
      {},
      {}};
  const dif::ProbeDescription name{"fbt", "", "vfs_read", "entry"};
  dif::ProviderAttributes attributes;
  attributes.module.data = dif::Stability::Private;  // of a field that the name has not
  attributes.function.name = dif::Stability::Private;
  attributes.arguments = {dif::Stability::Evolving, dif::Stability::Evolving,
                          dif::DependencyClass::Isa};
  const std::string after =
      "\n\tProbe Description Attributes\n"
      "\t\tIdentifier Names: Private\n"
      "\t\tData Semantics:   Stable\n"
      "\t\tDependency Class: Common\n"
      "\n\tArgument Attributes\n"
      "\t\tIdentifier Names: Evolving\n"
      "\t\tData Semantics:   Evolving\n"
      "\t\tDependency Class: ISA\n\n";

  EXPECT_EQ(probe_list_details(name, attributes, arguments, types),
            "\n\tArgument Types\n\t\targs[0]: int *where\n\t\targs[1]: size_t count\n"
            "\t\targs[2]: int\n" +
                after);
  EXPECT_EQ(probe_list_details(name, attributes, {}, types),
            "\n\tArgument Types\n\t\tNone\n" + after);
}

TEST(ProbeList, AnInstructionHasLinesOfItsOwn) {
  EXPECT_EQ(probe_list_instruction("push rbp"), "\tInstruction\n\t\tpush rbp\n\n");
  EXPECT_EQ(probe_list_instruction(""), "");
}

TEST(ProbeList, RefusedOnesDoNotLookLikeProbes) {
  EXPECT_EQ(refusal_list({}), "");
  EXPECT_EQ(refusal_list({{{"fbt", "vmlinux", "do_idle", "entry"}, "do_idle has no ftrace site"}}),
            "\n\tNot probes, each with its reason\n"
            "\t\tfbt:vmlinux:do_idle:entry: do_idle has no ftrace site\n"
            "\n\tHow many, by reason\n"
            "\t\t       1 it has no ftrace site\n\n");
}

TEST(ProbeList, ReasonsAreCountedWhateverTheirFunctionAndAddress) {
  const std::string list =
      refusal_list({{{"fbt", "vmlinux", "a", "entry"}, "no probe can stand at 0xffff1: it waits"},
                    {{"fbt", "vmlinux", "b", "entry"}, "b has no ftrace site"},
                    {{"fbt", "vmlinux", "c", "entry"}, "c has no ftrace site"},
                    {{"fbt", "vmlinux", "d", "return"}, "the text at 0xffff2 does not decode"},
                    {{"fbt", "vmlinux", "e", "return"}, "the text at 0xffff30 does not decode"},
                    {{"fbt", "vmlinux", "f", "entry"}, "f has no ftrace site"},
                    {{"vm", "", "", "cpuid"}, "no probe can stand at"}});

  EXPECT_EQ(list.substr(list.find("\n\tHow many")),
            "\n\tHow many, by reason\n"
            "\t\t       3 it has no ftrace site\n"
            "\t\t       2 the text at 0x... does not decode\n"
            "\t\t       1 it waits\n"
            "\t\t       1 no probe can stand at\n\n");
}

TEST(StabilityReport, HasDtracesLayout) {
  using dif::DependencyClass;
  using dif::Stability;
  EXPECT_EQ(stability_report("description BEGIN",
                             {Stability::Evolving, Stability::Stable, DependencyClass::Common},
                             {Stability::Stable, Stability::Private, DependencyClass::Isa}),
            "\nStability attributes for description BEGIN:\n\n"
            "\tMinimum Probe Description Attributes\n"
            "\t\tIdentifier Names: Evolving\n"
            "\t\tData Semantics:   Stable\n"
            "\t\tDependency Class: Common\n\n"
            "\tMinimum Statement Attributes\n"
            "\t\tIdentifier Names: Stable\n"
            "\t\tData Semantics:   Private\n"
            "\t\tDependency Class: ISA\n\n");
}

}  // namespace
}  // namespace ringside::cli
