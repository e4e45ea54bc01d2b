// Where the values that a clause records lie in its record.
// Fire context: no (computed once when a clause is enabled).
#pragma once

#include <vector>

#include "dif/engine.h"
#include "dif/program.h"

namespace ringside::dif {

struct RecordLayout {
  std::vector<RecordField> fields;  // in the order of actions and their arguments
  std::uint32_t size = 0;           // bytes of data, 0 when only the firing itself is recorded
  /// False when all that the clause does is aggregate or assign: it leaves no record.
  bool records = true;
};

RecordLayout layout_record(const Clause& clause, std::uint32_t string_size);

}  // namespace ringside::dif
