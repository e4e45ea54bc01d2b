#include "dif/program/stability.h"

#include <gtest/gtest.h>

namespace ringside::dif {
namespace {

constexpr Attributes kKernelAttributes{Stability::Private, Stability::Private,
                                       DependencyClass::Unknown};

TEST(Stability, LeastTakesTheLesserOfEachPart) {
  const Attributes a{Stability::Evolving, Stability::Standard, DependencyClass::Isa};
  EXPECT_EQ(least(a, Attributes{}),
            (Attributes{Stability::Evolving, Stability::Stable, DependencyClass::Isa}));
  EXPECT_EQ(least(a, kKernelAttributes), kKernelAttributes);
}

TEST(Stability, AtLeastComparesEveryPart) {
  EXPECT_TRUE(at_least({}, {}));
  EXPECT_TRUE(at_least({}, kKernelAttributes));
  EXPECT_FALSE(at_least({Stability::Stable, Stability::Evolving, DependencyClass::Common}, {}));
}

TEST(Stability, TextIsReadBackInAnyCase) {
  EXPECT_EQ(to_string(Attributes{}), "Stable/Stable/Common");
  EXPECT_EQ(parse_attributes("private/PRIVATE/Unknown"), kKernelAttributes);
  EXPECT_EQ(parse_attributes("Stable/Stable"), std::nullopt);
  EXPECT_EQ(parse_attributes("Stable/Odd/ISA"), std::nullopt);
  EXPECT_EQ(parse_attributes("Stable/Stable/ISA/more"), std::nullopt);
}

}  // namespace
}  // namespace ringside::dif
