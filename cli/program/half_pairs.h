// Functions of which a script gets the entry without the return, or the other way round, because no
// probe can stand at the other end: with -F their arrows have no other half. Pure.
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
  /// Those that lack a probe which one of the script's descriptions asks for.
  Found find(std::span<const dif::ProbeDescription> asked) const;

 private:
  struct Ends {
    std::size_t entries = 0, returns = 0;  // functions of one name are several
  };
  std::map<std::tuple<std::string, std::string, std::string>, Ends> functions_;
};

}  // namespace ringside::cli
