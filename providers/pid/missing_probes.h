// How many of the probes that a description asks for are missing, in one line. Used by providers of
// processes, where a part of a file's functions has no probe: pages without room, say. Without the
// line, a count over a whole library would look complete.
// Pure. Does not: know why a probe is missing.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "dif/program/probe_description.h"

namespace ringside::providers {

class MissingProbes {
 public:
  void add_there(const dif::ProbeDescription& name) { there_.insert(name.to_string()); }
  /// Of a probe that is there, too, in another file of the same name, it counts as one of those.
  void add_missing(const dif::ProbeDescription& name, std::string why) {
    missing_.try_emplace(name.to_string(), Missing{name, std::move(why)});
  }
  /// "212 of 3102 probes are missing, libc.so.6:abort:entry for one: WHY"; empty where none is
  /// missing, or none is there.
  std::optional<std::string> text() const;

 private:
  struct Missing {
    dif::ProbeDescription name;
    std::string why;
  };
  std::set<std::string> there_;
  std::map<std::string, Missing> missing_;  // by name
};

}  // namespace ringside::providers
