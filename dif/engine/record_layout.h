// The layout of a clause's record: the place of each value that it records. Computed once, when a
// clause is enabled.
#pragma once

#include <vector>

#include "dif/engine/engine.h"
#include "dif/engine/record_buffer.h"
#include "dif/program/program.h"

namespace ringside::dif {

/// Which buffer a clause's record goes to.
enum class RecordKind : std::uint8_t {
  None,         // all that it does is aggregate, assign or act: it leaves no record
  Principal,    // of the vCPU
  Speculative,  // that speculate() chooses
};

struct RecordLayout {
  std::vector<RecordField> fields;  // in the order of actions and their arguments
  RecordShape shape;
  RecordKind kind = RecordKind::Principal;
};

RecordLayout layout_record(const Clause& clause, const EngineOptions& options);

}  // namespace ringside::dif
