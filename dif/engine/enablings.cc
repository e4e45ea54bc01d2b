// In this file, top to bottom: the cost of a clause and the state that it touches, names, enabling,
// END's records.
#include "dif/engine/enablings.h"

#include <algorithm>
#include <utility>

#include "dif/program/insn.h"
#include "vmm/base/check.h"

namespace ringside::dif {

namespace {

/// The most that one run of the object may cost, in simple instructions: calls and strings go over
/// strings.
std::uint64_t work_of(const Difo& difo, std::uint64_t over_strings) {
  std::uint64_t work = difo.text.size();
  for (const std::uint32_t word : difo.text) {
    if (Insn{word}.op() == Opcode::Call) work += over_strings;
  }
  return work + (difo.result.kind == ValueKind::String ? over_strings : difo.result.size / 16);
}

std::uint64_t work_of(const Clause& clause, const EngineOptions& options) {
  constexpr std::uint64_t kPiecesOfPacket = 4096;  // pages and buffers, at some steps each
  const std::uint64_t over_strings = 16 + options.string_size / 16;
  std::uint64_t work = 1 + clause.actions.size();
  if (clause.predicate) work += work_of(*clause.predicate, over_strings);
  for (const Action& action : clause.actions) {
    for (const Difo& difo : action.arguments) work += work_of(difo, over_strings);
    if (action.kind == ActionKind::Pcap) work += kPiecesOfPacket + options.packet_size / 16;
  }
  return work;
}

bool has(const Clause& clause, ActionKind kind) {
  return std::ranges::any_of(clause.actions, [kind](const Action& a) { return a.kind == kind; });
}

bool orders(const Clause& clause) {
  return std::ranges::any_of(clause.actions, [](const Action& a) { return is_order(a.kind); });
}

template <class Visit>
void for_each_insn(const Clause& clause, Visit visit) {
  const auto visit_all = [&](const Difo& difo) {
    for (const std::uint32_t word : difo.text) visit(Insn{word});
  };
  if (clause.predicate) visit_all(*clause.predicate);
  for (const Action& action : clause.actions) {
    for (const Difo& difo : action.arguments) visit_all(difo);
  }
}

bool is_speculative(ActionKind kind) {
  return kind == ActionKind::Speculate || kind == ActionKind::Commit || kind == ActionKind::Discard;
}

bool speculates(const Clause& clause) {
  return std::ranges::any_of(clause.actions,
                             [](const Action& action) { return is_speculative(action.kind); });
}

/// Before all other probes fire, or after them.
bool fires_alone(const ProbeDescription& name) {
  return name.provider == "dtrace" && (name.name == "BEGIN" || name.name == "END");
}

}  // namespace

std::size_t room_for_orders(const Program& program, const EngineOptions& options) {
  constexpr std::size_t kLeast = 64 << 10, kRecords = 16;
  if (options.buffer_policy != BufferPolicy::Switch) return 0;
  std::size_t largest = 0;
  for (const Clause& clause : program.clauses) {
    if (!orders(clause)) continue;
    const RecordLayout layout = layout_record(clause, options);
    largest = std::max<std::size_t>(largest, layout.shape.size);
  }
  if (largest == 0) return 0;
  return std::clamp(kRecords * largest, kLeast, std::max(kLeast, options.buffer_size));
}

Enablings::Enablings(const Program& program, const EngineOptions& options,
                     SharedVariables& variables)
    : program_(program),
      options_(options),
      variables_(variables),
      shapes_(1),
      names_(1),
      machine_name_(add_name(options.machine)),
      stores_noted_(program.clauses.size()) {}

std::uint32_t Enablings::add_name(const std::string& text) {
  if (text.empty()) return 0;
  const auto at = static_cast<std::uint32_t>(names_.size());
  const auto bytes = std::as_bytes(std::span(text));
  names_.insert(names_.end(), bytes.begin(), bytes.end());
  names_.push_back(std::byte{0});
  return at;
}

EnabledProbe& Enablings::probe(ProbeId id, const ProbeDescription& name) {
  const std::size_t page = id.value / kIdsOfPage;
  if (probes_by_id_.size() <= page) probes_by_id_.resize(page + 1);
  if (probes_by_id_[page] == nullptr) probes_by_id_[page] = std::make_unique<IdPage>();
  EnabledProbe*& known = (*probes_by_id_[page])[id.value % kIdsOfPage];
  if (known == nullptr) {
    EnabledProbe fresh{name, {id, {}}, {}};
    fresh.identity.names = {add_name(name.provider), add_name(name.module), add_name(name.function),
                            add_name(name.name), machine_name_};
    fresh.identity.machine_number = options_.machine_number;
    fresh.identity.machine_process = options_.machine_process;
    probes_.push_back(std::move(fresh));
    known = &probes_.back();
  }
  return *known;
}

/// A global that is stored while several vCPUs may fire is read under the program lock.
void Enablings::note_stores(std::uint32_t clause) {
  if (stores_noted_[clause]) return;
  stores_noted_[clause] = true;
  bool any = false;
  for_each_insn(program_.clauses[clause], [&](Insn in) {
    if (in.op() != Opcode::Stgs || in.index() < kFirstUserVariable) return;
    any = any || variables_.is_settled(in.index());
    variables_.unsettle(in.index());
  });
  if (any) find_program_first();
}

bool Enablings::comes_to_program(const Clause& clause) const {
  bool comes = speculates(clause);
  for_each_insn(clause, [&](Insn in) {
    switch (in.op()) {
      case Opcode::Ldgaa:
      case Opcode::Stgaa: comes = true; break;
      case Opcode::Ldgs:
      case Opcode::Stgs:
        if (in.index() >= kFirstUserVariable) comes |= !variables_.is_settled(in.index());
        break;
      case Opcode::Call:
        comes |= static_cast<Subroutine>(in.index()) == Subroutine::Speculation;
        break;
      default: break;
    }
  });
  return comes;
}

/// A firing may fault at any time and then fires ERROR, too.
void Enablings::find_program_first() {
  const auto comes = [this](const EnabledProbe& probe) {
    return std::ranges::any_of(probe.ecbs,
                               [this](const Ecb* ecb) { return comes_to_program(*ecb->clause); });
  };
  const EnabledProbe* const error = error_probe();
  error_comes_ = error != nullptr && comes(*error);
  for (EnabledProbe& probe : probes_) probe.program_first = error_comes_ || comes(probe);
}

void Enablings::set_error_probe(ProbeId probe) {
  error_probe_ = probe;
  find_program_first();
}

EcbId Enablings::enable(std::uint32_t clause, ProbeId id, const ProbeDescription& name) {
  CHECK(clause < program_.clauses.size());
  const Clause& enabled = program_.clauses[clause];
  RecordLayout layout = layout_record(enabled, options_);
  Ecb ecb;
  ecb.info = {EcbId{static_cast<std::uint32_t>(ecbs_.size() + 1)}, clause, id,
              std::move(layout.fields)};
  ecb.clause = &enabled;
  ecb.continues = enabled.continues;
  ecb.kind = layout.kind;
  ecb.commits_beside = layout.kind == RecordKind::Principal && has(enabled, ActionKind::Commit);
  ecb.exits = layout.kind == RecordKind::Principal && has(enabled, ActionKind::Exit);
  ecb.orders = layout.kind == RecordKind::Principal && orders(enabled);
  // A record that no buffer can hold is never moved for a commit; exit() is done all the same.
  const bool can_be = layout.shape.size <= options_.buffer_size;
  if (ecb.exits || (ecb.commits_beside && can_be)) {
    largest_beside_ = std::max<std::size_t>(largest_beside_, layout.shape.data_size);
  }
  EnabledProbe& fired = probe(id, name);
  ecb.work = work_of(enabled, options_);
  ecb.step_work = ecb.work / (enabled.actions.size() + 1);
  if (enabled.repeat) {
    fired.loops = true;
    const auto in_loop = [&](const Ecb* other) {
      return other->info.clause >= enabled.repeat->first;
    };
    const auto first = std::ranges::find_if(fired.ecbs, in_loop);
    ecb.loop_start = static_cast<std::size_t>(first - fired.ecbs.begin());
  }
  shapes_.push_back(layout.shape);
  ecbs_.push_back(std::move(ecb));
  fired.ecbs.push_back(&ecbs_.back());
  most_clauses_ = std::max(most_clauses_, fired.ecbs.size());
  if (!fires_alone(name)) note_stores(clause);
  if (error_probe_ == id) {
    find_program_first();
  } else {
    fired.program_first = fired.program_first || error_comes_ || comes_to_program(enabled);
  }
  return ecbs_.back().info.id;
}

/// Adds up what `bytes` (of a shape, and all before it) says of the records of END.
template <class Bytes>
std::size_t Enablings::sum_over_end(Bytes bytes) const {
  const EnabledProbe* const end = end_probe_ ? find(*end_probe_) : nullptr;
  std::size_t sum = 0;
  if (end == nullptr) return sum;
  for (const Ecb* ecb : end->ecbs) {
    if (ecb->kind == RecordKind::Principal) sum += bytes(shapes_[ecb->info.id.value], sum);
  }
  return sum;
}

std::size_t Enablings::end_reserve() const {
  return sum_over_end([](const RecordShape& shape, std::size_t) {
    return std::size_t{shape.size} + shape.alignment - 4;
  });
}

bool Enablings::records_fit() const {
  if (options_.buffer_policy != BufferPolicy::Fill) return true;
  const auto fits = [&](const Ecb& ecb) {
    return ecb.kind != RecordKind::Principal ||
           shapes_[ecb.info.id.value].size <= options_.buffer_size;
  };
  if (!std::ranges::all_of(ecbs_, fits)) return false;
  const std::size_t of_end = sum_over_end([](const RecordShape& shape, std::size_t before) {
    const std::size_t past = before % shape.alignment;
    return shape.size + (past == 0 ? 0 : shape.alignment - past);
  });
  return of_end <= options_.buffer_size;
}

const EcbInfo& Enablings::info(EcbId id) const {
  CHECK(id.value >= 1 && id.value <= ecbs_.size());
  return ecbs_[id.value - 1].info;
}

}  // namespace ringside::dif
