#include "providers/pid/missing_probes.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

dif::ProbeDescription entry_of(std::string function) {
  return {"pid*", "lib.so", std::move(function), "entry"};
}

TEST(MissingProbes, AreCountedWithTheFirstAndItsReason) {
  MissingProbes probes;
  probes.add_there(entry_of("c"));
  probes.add_there(entry_of("d"));
  probes.add_there(entry_of("c"));
  probes.add_missing(entry_of("b"), "no room");
  probes.add_missing(entry_of("b"), "another time");
  probes.add_missing(entry_of("e"), "not there");

  EXPECT_EQ(probes.text(), "2 of 4 probes are missing, lib.so:b:entry for one: no room");
}

TEST(MissingProbes, OfAnotherFileOfTheSameNameAreThere) {
  MissingProbes probes;
  probes.add_there(entry_of("a"));
  probes.add_missing(entry_of("a"), "no room");

  EXPECT_EQ(probes.text(), std::nullopt);
}

TEST(MissingProbes, AreNotToldWhereNoneIsThere) {
  MissingProbes probes;
  probes.add_missing(entry_of("a"), "no room");

  EXPECT_EQ(probes.text(), std::nullopt) << "that is an error, which says why";
}

}  // namespace
}  // namespace ringside::providers
