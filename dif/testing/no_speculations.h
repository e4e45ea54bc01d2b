// For the tests of evaluation without an engine: speculation() finds none free.
#pragma once

#include "dif/engine/speculations.h"

namespace ringside::dif::testing {

inline Speculations no_speculations() {
  return Speculations({.speculations = 0}, 1, {});
}

}  // namespace ringside::dif::testing
