// What kinds of actions (program.h) have in common: each question about a kind, answered once.
// Fire context: yes.
#pragma once

#include <optional>

#include "dif/engine/fire_record.h"
#include "dif/program/program.h"

namespace ringside::dif {

/// Whether the arguments' values go into the record, or the consumer has to do something: what D
/// calls a data-recording action. Aggregations are kept elsewhere.
bool records_data(ActionKind kind);

/// Whether arguments[0] is the address of bytes to record, Action::argument of them at most.
bool dumps_memory(ActionKind kind);

/// What the machine has to be able to do for it.
std::optional<GuestContext::Deed> deed_of(ActionKind kind);

}  // namespace ringside::dif
