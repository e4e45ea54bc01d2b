// Finds functions with only one of the two probes that a script asks for: the entry or the return.
// No probe can stand at the other end, so the arrows of -F have no other half. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <tuple>

#include "dif/program/probe_description.h"

namespace ringside::cli {

class HalfPairs {
 public:
  /// A probe that the script gets; each once.
  void add(const dif::ProbeDescription& probe);

  struct Found {
    std::size_t count = 0;
    dif::ProbeDescription first{};  // the probe that is missing
  };
  /// The functions that lack a probe which one of the script's descriptions asks for.
  Found find(std::span<const dif::ProbeDescription> asked) const;

 private:
  struct Ends {
    std::size_t entries = 0, returns = 0;  // functions of one name are several
  };
  std::map<std::tuple<std::string, std::string, std::string>, Ends> functions_;
};

}  // namespace ringside::cli
