// The rules for a whole program: variables mean the same in every object, aggregations exist and
// their parameters make sense, actions have the arguments that the engine and the consumer take
// from them, a speculation is chosen once and before anything is recorded, loops nest and end, and
// a value of each shape that is printed can be walked in bounded time.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "dif/program/action_kind.h"
#include "dif/program/aggregate_function.h"
#include "dif/program/format.h"
#include "dif/program/options.h"
#include "dif/verify/verify.h"
#include "dif/verify/verify_shapes.h"
#include "vmm/base/numbers.h"

namespace ringside::dif {

namespace {

constexpr std::size_t kMostColumnsInAll = 16 << 20;   // of one format: its text is made in memory
constexpr std::uint64_t kMostClauseBytes = 1u << 31;  // of one record, whose offsets are 32 bits

template <class... Args>
tl::unexpected<Error> invalid(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorCode::Invalid, fmt::format(text, std::forward<Args>(args)...));
}

Result<void> expect_arguments(const Action& action, std::size_t wanted) {
  if (action.arguments.size() == wanted) return {};
  return invalid("{} arguments where {} are needed", action.arguments.size(), wanted);
}

Result<void> expect_aggregation(const Action& action) {
  if (action.aggregations.size() == 1) return {};
  return invalid("{} aggregations where one is needed", action.aggregations.size());
}

// The rules that actions.def names. Indices into the program's tables are in range.

Result<void> check_no_argument(const Action& action, const Program&) {
  return expect_arguments(action, 0);
}

Result<void> check_one_argument(const Action& action, const Program&) {
  return expect_arguments(action, 1);
}

/// As many arguments as the format takes from the firing. No format prints none of them.
Result<void> check_format(const Action& action, const Program&) {
  if (action.format.empty()) return {};
  const auto conversions = parse_format(action.format);
  if (!conversions) return tl::unexpected(conversions.error());
  std::size_t wanted = 0, columns = 0;
  for (const Conversion& conversion : *conversions) {
    columns += static_cast<std::size_t>(conversion.width.value_or(0)) +
               static_cast<std::size_t>(conversion.precision.value_or(0));
    if (conversion.kind == 0 || conversion.takes_aggregation) continue;
    wanted += 1u + conversion.star_width + conversion.star_precision;
  }
  if (columns > kMostColumnsInAll) {
    return fail(ErrorCode::Limit,
                fmt::format("a format is wider than {} columns in total", kMostColumnsInAll));
  }
  return expect_arguments(action, wanted);
}

Result<void> check_aggregate(const Action& action, const Program& program) {
  TRY(expect_aggregation(action));
  const Aggregation& aggregation = program.aggregations[action.aggregations[0]];
  const bool has_value = aggregation.function != AggregateFunction::Count;
  TRY(expect_arguments(
      action, aggregation.keys.size() + (has_value ? 1 : 0) + (action.quantize_increment ? 1 : 0)));
  for (std::size_t i = 0; i < aggregation.keys.size(); ++i) {
    const ValueType& given = action.arguments[i].result;
    const ValueType& key = aggregation.keys[i];
    const bool stacks = is_stack(given.kind) && is_stack(key.kind);
    const bool both_fit = stacks && (given.kind == key.kind || key.kind == ValueKind::UserStack) &&
                          stack_key_size(given, key.kind) <= key.size;
    if (!both_fit && (given.kind != key.kind || given.size != key.size)) {
      return invalid("key {} has another type than its aggregation's", i);
    }
  }
  for (std::size_t i = aggregation.keys.size(); i < action.arguments.size(); ++i) {
    if (action.arguments[i].result.kind != ValueKind::Integer) {
      return invalid("the value of an aggregation is no number");
    }
  }
  return {};
}

/// Several aggregations are printed side by side, joined on their keys.
Result<void> check_printa(const Action& action, const Program& program) {
  if (action.aggregations.empty()) return invalid("printa() without an aggregation");
  const auto& keys = program.aggregations[action.aggregations[0]].keys;
  for (const std::uint32_t index : action.aggregations) {
    if (program.aggregations[index].keys.size() != keys.size()) {
      return invalid("printa() of aggregations whose keys differ");
    }
  }
  return expect_arguments(action, 0);
}

Result<void> check_percentile(const Action& action, const Program& program) {
  TRY(expect_aggregation(action));
  const Aggregation& aggregation = program.aggregations[action.aggregations[0]];
  if (aggregating_info(aggregation.function).result != AggregatingInfo::Result::Buckets) {
    return invalid("percentile() of an aggregation without buckets");
  }
  if (parse_percentiles(action.text).empty()) {
    return invalid("percentile() without a list of percentiles");
  }
  return expect_arguments(action, 0);
}

Result<void> expect_dump(const Action& action, std::size_t arguments) {
  if (action.argument == 0 || action.argument > kMostRecordBytes) {
    return invalid("tracemem() of no possible size");
  }
  return expect_arguments(action, arguments);
}

Result<void> check_tracemem(const Action& action, const Program&) {
  return expect_dump(action, 1);
}

Result<void> check_tracemem_dynamic(const Action& action, const Program&) {
  return expect_dump(action, 2);
}

Result<void> check_pcap(const Action& action, const Program&) {
  TRY(expect_arguments(action, 2));
  for (const Difo& difo : action.arguments) {
    if (difo.result.kind != ValueKind::Integer) return invalid("pcap() of what is no number");
  }
  return {};
}

Result<void> check_print(const Action& action, const Program& program) {
  TRY(expect_arguments(action, 1));
  if (action.shapes.size() != 1) return invalid("print() of a value without a type");
  const TypeShape& shape = program.shapes[action.shapes[0]];
  const ValueType& value = action.arguments[0].result;
  if (is_aggregate_shape(shape.kind) && value.kind != ValueKind::String &&
      (value.kind != ValueKind::Bytes || shape.size > value.size)) {
    return invalid("print() of {} bytes as '{}'", value.size, shape.name);
  }
  return {};
}

/// Name and value are constants or computed, the name first: at least one string gives the name.
Result<void> check_setopt(const Action& action, const Program&) {
  const bool computes_name = action.format.empty();
  const std::size_t computed = action.arguments.size();
  if (computes_name && computed == 0) return invalid("setopt() of no option");
  const std::size_t most = (computes_name ? 1 : 0) + (action.text.empty() ? 1 : 0);
  if (computed > most) return invalid("setopt() has {} arguments too many", computed - most);
  for (const Difo& difo : action.arguments) {
    if (difo.result.kind != ValueKind::String) return invalid("setopt() of what is no string");
  }
  return {};
}

Result<void> check_thread(const Action& action, const Program&) {
  TRY(expect_arguments(action, 3));
  const auto kind = [&](std::size_t argument) { return action.arguments[argument].result.kind; };
  if (kind(0) == ValueKind::Integer && kind(1) == ValueKind::Integer &&
      kind(2) == ValueKind::String) {
    return {};
  }
  return invalid("a thread is two numbers and a string");
}

Result<void> check_one_aggregation(const Action& action, const Program&) {
  TRY(expect_aggregation(action));
  return expect_arguments(action, 0);
}

Result<void> check_trunc(const Action& action, const Program&) {
  TRY(expect_aggregation(action));
  return expect_arguments(action, action.arguments.empty() ? 0 : 1);
}

Result<void> check_normalize(const Action& action, const Program&) {
  TRY(expect_aggregation(action));
  return expect_arguments(action, 1);
}

Result<void> check_kind(const Action& action, const Program& program) {
  switch (action.kind) {
// clang-format off
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  case ActionKind::kind: return check_##verify(action, program);
#define DIF_ACTION_FORM(kind, number, changes, records, verify, fire, show) \
  case ActionKind::kind: return check_##verify(action, program);
#include "dif/program/actions.def"
    // clang-format on
  }
  return invalid("there is no action {}", static_cast<unsigned>(action.kind));
}

Result<void> check_action(const Action& action, const Program& program) {
  for (const std::uint32_t aggregation : action.aggregations) {
    if (aggregation >= program.aggregations.size()) {
      return invalid("there is no aggregation {}", aggregation);
    }
  }
  for (const std::uint32_t shape : action.shapes) {
    if (shape >= program.shapes.size()) return invalid("there is no shape {}", shape);
  }
  return check_kind(action, program);
}

/// Whether speculate() may not follow: these have put something where records go.
bool fills_the_record(ActionKind kind) {
  return records_data(kind) || kind == ActionKind::Aggregate || kind == ActionKind::Commit;
}

/// The rest of a clause goes to one speculation, chosen before anything is recorded.
Result<void> check_speculation(const Clause& clause) {
  bool records = false, chosen = false;
  for (const Action& action : clause.actions) {
    if (action.kind == ActionKind::Speculate) {
      if (chosen) return invalid("speculate() after speculate()");
      if (records) return invalid("speculate() after data was recorded");
      chosen = true;
    } else {
      records = records || fills_the_record(action.kind);
    }
  }
  return {};
}

/// No record of the clause is longer, whatever strsize is.
std::uint64_t most_recorded_bytes(const Clause& clause) {
  constexpr std::uint64_t kAlignment = 8;
  std::uint64_t bytes = 0;
  for (const Action& action : clause.actions) {
    const bool dump = dumps_memory(action.kind);
    if (action.kind == ActionKind::Pcap) bytes += kAlignment + kMostPacketBytes + 64;
    for (const Difo& difo : action.arguments) {
      const bool known = difo.result.kind != ValueKind::String;
      bytes += kAlignment + (dump    ? std::max<std::uint64_t>(action.argument, 8)
                             : known ? difo.result.size
                                     : kMostRecordBytes);
    }
  }
  return bytes;
}

/// A variable means the same wherever it is declared, because all objects share its storage.
class VariableTable {
 public:
  Result<void> add(const Difo& difo) {
    for (const Variable& variable : difo.variables) {
      const auto [at, fresh] = known_.emplace(std::pair(variable.scope, variable.id), variable);
      if (!fresh && (at->second.kind != variable.kind || at->second.type != variable.type)) {
        return invalid("variable '{}' changes its type", variable.name);
      }
    }
    return {};
  }

 private:
  std::map<std::pair<VariableScope, std::uint16_t>, Variable> known_;
};

/// They are looked up and shown.
Result<void> check_needs(const Program& program) {
  constexpr std::size_t kMostNeeds = 4096, kLongest = 256;
  const auto shows = [](const std::string& text) {
    return text.size() <= kLongest &&
           std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f; });
  };
  if (program.needs.size() > kMostNeeds) return invalid("there are too many needs of the kernel");
  for (const KernelNeed& need : program.needs) {
    if (!shows(need.module) || !shows(need.type) || !shows(need.release) || !shows(need.build)) {
      return invalid("a need of the kernel has no such name");
    }
  }
  return {};
}

/// Nothing is left for bind() to fill in, so what is checked here is what runs.
Result<void> check_bound(const Program& program) {
  bool relocations = false;
  for_each_difo(program, [&](const Difo& difo) { relocations |= !difo.relocations.empty(); });
  if (program.kernel_names.empty() && !relocations) return {};
  return invalid("the program is not bound to a kernel");
}

Result<void> in_context(Result<void> result, std::size_t clause, std::string_view where) {
  if (result) return result;
  return fail(result.error().code,
              fmt::format("DIF of clause {}, {}: {}", clause + 1, where, result.error().message));
}

Result<void> check_clause(Clause& clause, std::size_t number, const Program& program,
                          VariableTable& variables) {
  const auto check = [&](Difo& difo) -> Result<void> {
    TRY(verify_difo(difo));
    difo.destructive = changes_the_guest(difo);
    return variables.add(difo);
  };
  if (clause.actions.size() > kMostActions) {
    return fail(ErrorCode::Limit, fmt::format("clause {} has too many actions", number + 1));
  }
  if (clause.predicate) TRY(in_context(check(*clause.predicate), number, "predicate"));
  for (std::size_t i = 0; i < clause.actions.size(); ++i) {
    Action& action = clause.actions[i];
    const std::string where = fmt::format("action {}", i + 1);
    for (Difo& difo : action.arguments) TRY(in_context(check(difo), number, where));
    TRY(in_context(check_action(action, program), number, where));
  }
  TRY(in_context(check_speculation(clause), number, "actions"));
  if (most_recorded_bytes(clause) > kMostClauseBytes) {
    return fail(ErrorCode::Limit, fmt::format("clause {} records more than fits", number + 1));
  }
  return {};
}

/// A loop that was seen whole: clauses first..last, and how often at most one of them runs in it.
struct Loop {
  std::size_t first, last;
  std::uint64_t trips;
};

/// `open` holds the loops so far that no other one contains, in order. The new one swallows those
/// inside it. From `alike` on, all clauses up to this one have the same probes.
Result<void> check_loop(const Repeat& repeat, std::size_t alike, std::size_t last,
                        std::vector<Loop>& open) {
  if (repeat.first > last) return invalid("clause {} repeats from a later one", last + 1);
  if (repeat.limit == 0) return invalid("the loop of clause {} has no limit", last + 1);
  if (repeat.first < alike) {
    return invalid("the loop of clause {} spans clauses of other probes", last + 1);
  }
  std::uint64_t inner = 1;
  while (!open.empty() && open.back().last >= repeat.first) {
    if (open.back().first < repeat.first) {
      return invalid("the loop of clause {} overlaps that of clause {}", last + 1,
                     open.back().last + 1);
    }
    inner = std::max(inner, open.back().trips);
    open.pop_back();
  }
  if (repeat.limit > kMostTrips / inner) {
    return fail(ErrorCode::Limit, fmt::format("the loop of clause {} may run more than {} times",
                                              last + 1, kMostTrips));
  }
  open.push_back({repeat.first, last, inner * repeat.limit});
  return {};
}

}  // namespace

bool is_destructive(const Action& action) {
  return action_info(action.kind).changes != Changes::Nothing ||
         std::ranges::any_of(action.arguments, changes_the_guest);
}

std::optional<Destructive> first_destructive(const Program& program) {
  for (const Clause& clause : program.clauses) {
    const auto in_object = [&](const Difo& difo) -> std::optional<Destructive> {
      const std::string_view name = guest_changing_call(difo);
      if (name.empty()) return std::nullopt;
      const std::int32_t line = difo.source.parts.empty() ? 0 : difo.source.parts.back().line;
      return Destructive{name, line != 0 ? line : clause.line};
    };
    if (clause.predicate) {
      if (const auto found = in_object(*clause.predicate)) return found;
    }
    for (const Action& action : clause.actions) {
      for (const Difo& difo : action.arguments) {
        if (const auto found = in_object(difo)) return found;
      }
      const ActionInfo& info = action_info(action.kind);
      if (info.changes == Changes::Nothing) continue;
      const auto& parts = action.source.parts;
      return Destructive{info.name, parts.empty() ? clause.line : parts.front().line};
    }
  }
  return std::nullopt;
}

Result<void> check_storage(const Program& program, std::uint32_t string_size) {
  std::set<std::pair<VariableScope, std::uint16_t>> seen;
  std::uint64_t bytes = 0;
  for_each_difo(program, [&](const Difo& difo) {
    for (const Variable& variable : difo.variables) {
      if (!seen.emplace(variable.scope, variable.id).second) continue;
      if (has_storage(variable)) bytes += round_up(stored_size(variable.type, string_size), 8u);
    }
  });
  if (bytes <= kMostStorage) return {};
  return fail(ErrorCode::Limit,
              fmt::format("the program's variables take {} bytes where strings have {}; at most {} "
                          "are possible",
                          bytes, string_size, kMostStorage));
}

Result<VerifiedProgram> verify_program(Program program) {
  if (program.clauses.size() > kMostClauses) {
    return fail(ErrorCode::Limit, fmt::format("there are more than {} clauses", kMostClauses));
  }
  for (const Aggregation& aggregation : program.aggregations) {
    TRY(check_aggregation(aggregation));
    for (const ValueType& key : aggregation.keys) {
      TRY(check_value_type(key, kMostRecordBytes, "a key of @" + aggregation.name));
    }
  }
  TRY(verify_shapes(program));
  VariableTable variables;
  std::vector<Loop> loops;
  std::size_t alike = 0;
  for (std::size_t i = 0; i < program.clauses.size(); ++i) {
    Clause& clause = program.clauses[i];
    TRY(check_clause(clause, i, program, variables));
    if (i > 0 && clause.probes != program.clauses[i - 1].probes) alike = i;
    if (clause.repeat) TRY(check_loop(*clause.repeat, alike, i, loops));
  }
  TRY(check_needs(program));
  TRY(check_bound(program));
  TRY(check_storage(program, EngineOptions().string_size));
  return VerifiedProgram(std::move(program));
}

}  // namespace ringside::dif
