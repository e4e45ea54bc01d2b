// Decides which clauses can be evaluated later, from what a trap's record holds: the registers, the
// time, and of the current task its address, name, ids and start time. A clause that looks at the
// guest's memory, or changes the guest, has to be evaluated while the vCPU stands still.
//
// An object is judged by one walk over its instructions (forward_walk.h). A load is harmless where
// its address is of D's own memory: of a string constant, a variable, or what a subroutine has
// made. Used by the tracer, which lets probes record or wait. Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dif/program/program.h"

namespace ringside::dif {

struct RecordNeeds {
  /// The arguments that the clause uses, by bit: the probe's place has to know them without memory.
  std::uint16_t arguments = 0;
  bool error_number = false;  // errno, likewise
  /// Why it cannot be evaluated later, worded to follow "waits: "; empty: it can.
  std::optional<std::string> obstacle;

  /// Of both.
  RecordNeeds& operator|=(const RecordNeeds& other);
};

/// Of a verified clause.
RecordNeeds record_needs(const Clause& clause);

}  // namespace ringside::dif
