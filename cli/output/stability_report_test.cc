#include "cli/output/stability_report.h"

#include <gtest/gtest.h>

namespace ringside::cli {
namespace {

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
