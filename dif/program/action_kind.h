// The kinds of actions and aggregating functions, and the properties of each: the rows of
// actions.def. Fire context: yes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringside::dif {

/// The actions of D, by what they do when a probe fires. [n] is Action::arguments[n]:
///   Trace, Exit, Raise, Chill   [0]: the value, status, signal, or ns that the vCPU waits
///   Print                       [0]; shapes[0] is its type. Structs and arrays travel as Bytes
///   Printf, System, Freopen, Snapshot
///                               format; the arguments of its conversions
///   Printa                      format (may be empty); aggregations
///   Percentile                  text: parse_percentiles() reads it; aggregations[0]
///   Pcap                        [0]: the address of a struct sk_buff; [1]: its link type
///   Tracemem                    [0]: the address; argument: the size
///   TracememDynamic             [0]: the address, [1]: how many bytes, at most `argument`
///   Aggregate                   aggregations[0]; the keys, then the value (count() has none)
///   Clear, Denormalize          aggregations[0]
///   Normalize                   aggregations[0]; [0]: the factor
///   Trunc                       aggregations[0]; number to keep (signed): [0], `argument`, none
///   Evaluate                    [0]: evaluated for its side effects
///   Setopt                      format: the name; text: the value; empty: it may be an argument
///   Speculate, Commit, Discard  [0]: the speculation
///   TellThread                  [0]: pid, [1]: tid, [2]: execname
enum class ActionKind : std::uint8_t {
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  kind,
#define DIF_ACTION_FORM(kind, number, changes, records, verify, fire, show) kind,
#include "dif/program/actions.def"
};

enum class AggregateFunction : std::uint8_t {
#define DIF_AGGREGATING(function, number, text, least, most, result) function,
#include "dif/program/actions.def"
};

/// The reason why an action is destructive.
enum class Changes : std::uint8_t {
  Nothing,  // it is not
  Host,     // files and processes of the host
  Guest,    // GuestContext::perform() or keep_still(), which not each machine can do
  Time,     // the vCPU stands still for longer
};

/// The action's part of a firing's record. D calls all but Nothing data-recording actions.
enum class RecordedData : std::uint8_t {
  Nothing,    // what there is to do is done in the firing
  Values,     // the arguments; the consumer does the rest
  Formatted,  // the arguments of Action::format
  Memory,     // Action::argument bytes at the address arguments[0]
  Packet,     // the packet at arguments[0] (packet_record.h), then arguments[1]
};

inline constexpr std::uint8_t kAny = 255;                     // arguments: no limit
inline constexpr std::uint16_t kFirstPrivateAction = 0x8000;  // numbers that are not DTrace's

struct ActionInfo {
  ActionKind kind;
  std::uint16_t number;
  std::string_view name;  // in D; empty where a program cannot call it by name
  std::uint8_t least, most;
  Changes changes;
  RecordedData records;
};

const ActionInfo& action_info(ActionKind kind);
/// By the number that saved programs hold.
std::optional<ActionKind> find_action(std::uint16_t number);

struct AggregatingInfo {
  enum class Result : std::uint8_t { Number, Buckets };
  AggregateFunction function;
  std::string_view name;
  std::uint8_t least, most;
  Result result;
};

const AggregatingInfo& aggregating_info(AggregateFunction function);
std::optional<AggregatingInfo> find_aggregating(std::string_view name);

/// The numbers of arguments that an action takes. Empty unless `name` is an action or a function
/// that records addresses of code.
struct Prototype {
  std::uint8_t least, most;
};
std::optional<Prototype> action_prototype(std::string_view name);

/// Whether the arguments' values go into the record, or the consumer has to do something.
inline bool records_data(ActionKind kind) {
  return action_info(kind).records != RecordedData::Nothing;
}

/// Whether it is something that the consumer has to do, by its record. A record that is lost is
/// then more than data that is missing.
bool is_order(ActionKind kind);

inline bool dumps_memory(ActionKind kind) {
  return action_info(kind).records == RecordedData::Memory;
}

}  // namespace ringside::dif
