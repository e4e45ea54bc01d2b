// What kinds of actions (program.h) have in common: each question about a kind, answered once.
// Fire context: yes.
#pragma once

#include "dif/program.h"

namespace ringside::dif {

/// Whether the arguments' values go into the record, or the consumer has to do something: what D
/// calls a data-recording action. Aggregations are kept elsewhere.
bool records_data(ActionKind kind);

}  // namespace ringside::dif
