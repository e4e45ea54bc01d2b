// A firing knows the past by D's variables alone. For each compiled program that is named, all its
// clauses fire 10,000 times, without exit(); then a fresh engine gets the variables as they are and
// both fire once more. All that this firing records, aggregates, reports, drops and leaves in
// variables has to be the same: nothing that many firings use up, cut or leave behind may tell them
// apart. The fresh engine interprets the program, the other one runs machine code.
//
// The strings that the program brings along lie in the guest's memory here, so that everything goes
// the way of what a guest has, and takes the space that is staged for it.
//
// Usage: state_check FILE.dof...   Prints "FILE: same", "FILE: differs: what" or "FILE: skipped:
// why" for each; status 1 when one differs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "dif/dof/dof.h"
#include "dif/engine/buffer_plan.h"
#include "dif/program/insn.h"
#include "dif/testing/state_peer.h"
#include "dif/verify/verify.h"

namespace ringside::dif {
namespace {

constexpr unsigned kFirings = 10'000, kLoopFirings = 50;
constexpr std::uint64_t kBetween = 1'000'000;  // ns between two firings
constexpr std::uint64_t kCleanEvery = 10;      // rounds; as cleanrate has it
constexpr std::uint64_t kTexts = 0xffff'8880'0000'0000;

class Texts final : public GuestReader {
 public:
  /// The guest's address of a string.
  std::uint64_t add(std::string_view text) {
    const std::uint64_t at = kTexts + bytes_.size();
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
    bytes_.push_back(std::byte{0});
    bytes_.resize((bytes_.size() + 63) / 64 * 64);  // whole lines, as a page has them
    return at;
  }
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    const std::uint64_t offset = at.raw() - kTexts;
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
      return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
    }
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }

 private:
  std::vector<std::byte> bytes_;
};

/// Every question has the same answer each time; arg0 is the address of a text.
class Guest final : public GuestContext {
 public:
  Guest() : text_(texts.add("a text of the guest's")) {}
  Result<std::uint64_t, Fault> variable(ContextVariable) const override { return 4711; }
  Result<std::size_t, Fault> execname(std::span<char> out) const override {
    constexpr std::string_view kName = "workload";
    const std::size_t size = std::min(out.size(), kName.size());
    std::copy_n(kName.begin(), size, out.begin());
    return size;
  }
  Result<std::uint64_t, Fault> argument(unsigned n) const override { return n == 0 ? text_ : n; }
  const GuestReader& kernel() const override { return texts; }
  const GuestReader& user() const override { return texts; }

  Texts texts;

 private:
  std::uint64_t text_;
};

void move_strings_to_guest(Difo& difo, Texts& texts) {
  for (std::uint32_t& word : difo.text) {
    const Insn in{word};
    if (in.op() != Opcode::Sets || difo.integers.size() >= 0xffff) continue;
    const std::string_view text(difo.strings.c_str() + in.index());
    word = encode_indexed(Opcode::Setx, static_cast<unsigned>(difo.integers.size()), in.rd());
    difo.integers.push_back(texts.add(text));
  }
}

/// exit() becomes trace() of its status.
void prepare(Program& program, Texts& texts) {
  for (Clause& clause : program.clauses) {
    if (clause.predicate) move_strings_to_guest(*clause.predicate, texts);
    for (Action& action : clause.actions) {
      if (action.kind == ActionKind::Exit) action.kind = ActionKind::Trace;
      for (Difo& difo : action.arguments) move_strings_to_guest(difo, texts);
    }
  }
}

/// The reason why firings differ on purpose; empty for most programs.
std::string why_not(const Program& program) {
  std::string why;
  for_each_difo(program, [&](const Difo& difo) {
    for (const std::uint32_t word : difo.text) {
      const Insn in{word};
      if (in.op() != Opcode::Call) continue;
      const auto called = static_cast<Subroutine>(in.index());
      if (called == Subroutine::Rand) why = "rand() is different each time";
      if (called == Subroutine::Speculation) why = "speculations are used up on purpose";
    }
  });
  return why;
}

/// One engine's firing half, with every clause on the probe that has its descriptions.
class Instance {
 public:
  Instance(const Program& program, const EngineOptions& options)
      : firings_(program, options, 1),
        memory_(options.buffer_size),
        records_(memory_.bytes(), options.buffer_policy, firings_.enablings.shapes()),
        out_(options, program.clauses.size(), records_),
        runner_(firings_, 0) {
    std::map<std::string, std::uint32_t> known;
    for (std::uint32_t i = 0; i < program.clauses.size(); ++i) {
      std::string names;
      for (const ProbeDescription& probe : program.clauses[i].probes) names += probe.to_string();
      const auto [at, fresh] = known.emplace(names, static_cast<std::uint32_t>(known.size() + 1));
      firings_.enablings.enable(i, ProbeId{at->second},
                                {"test", "golden", "state", names.substr(0, 60)});
    }
    probes_ = static_cast<std::uint32_t>(known.size());
    runner_.make_room();
  }
  void fire_all(const Guest& guest, std::uint64_t round) {
    if (round % kCleanEvery == 0) firings_.shared.variables.clean(0);
    for (std::uint32_t probe = 1; probe <= probes_; ++probe) {
      runner_.fire(ProbeId{probe}, {0, (round + 1) * kBetween, 0}, guest, out_);
    }
  }
  ClauseRunner& runner() { return runner_; }
  TraceData take() {
    TraceData trace_data;
    out_.take(0, trace_data);
    take_records({&records_}, true, trace_data);
    return trace_data;
  }

 private:
  Firings firings_;
  LazyMemory memory_;
  RecordBuffer records_;
  VcpuOutput out_;
  ClauseRunner runner_;
  std::uint32_t probes_ = 0;
};

bool same_record(const Record& a, const Record& b) {
  return a.ecb == b.ecb && std::ranges::equal(a.data, b.data);
}
bool same_fault(const FaultReport& a, const FaultReport& b) {
  return a.ecb == b.ecb && a.action == b.action && a.fault.kind == b.fault.kind &&
         a.fault.pc == b.fault.pc && a.fault.address == b.fault.address;
}
bool same_entry(const AggregateEntry& a, const AggregateEntry& b) {
  return a.aggregation == b.aggregation && a.key == b.key && a.words == b.words;
}

/// In what the firings differ; empty when in nothing.
std::string difference(Instance& old, Instance& fresh) {
  const TraceData a = old.take(), b = fresh.take();
  if (a.drops != b.drops) return "drops";
  if (!std::ranges::equal(a.faults, b.faults, same_fault)) return "faults";
  if (!std::ranges::equal(a.records, b.records, same_record)) return "records";
  if (!std::ranges::equal(a.aggregates, b.aggregates, same_entry)) return "aggregations";
  if (!testing::StatePeer::same_variables(old.runner(), fresh.runner())) return "variables";
  return {};
}

EngineOptions options_of(const Program& program) {
  EngineOptions options;
  const auto size = program.options.find("strsize");
  if (size != program.options.end()) {
    options.string_size = static_cast<std::uint32_t>(std::atoi(size->second.c_str()));
  }
  return plan_buffers(options, 1)->options;
}

/// A loop makes many rounds in one firing, up to a million.
unsigned rounds_of(const Program& program) {
  const bool loops = std::ranges::any_of(
      program.clauses, [](const Clause& clause) { return clause.repeat.has_value(); });
  return loops ? kLoopFirings : kFirings;
}

std::string check(const std::vector<std::byte>& dof) {
  auto program = read_dof(dof);
  if (!program) return "differs: " + program.error().message;
  if (const std::string why = why_not(*program); !why.empty()) return "skipped: " + why;
  Guest guest;
  prepare(*program, guest.texts);
  auto verified = verify_program(std::move(*program));
  if (!verified) return "differs: " + verified.error().message;
  const EngineOptions options = options_of(verified->program());
  EngineOptions interpreted = options;
  interpreted.jit = false;
  Instance old(verified->program(), options), fresh(verified->program(), interpreted);
  for (unsigned round = 0; round < rounds_of(verified->program()); ++round) {
    old.fire_all(guest, round);
  }
  (void)old.take();
  testing::StatePeer::copy_variables(old.runner(), fresh.runner());
  old.fire_all(guest, kFirings);
  fresh.fire_all(guest, kFirings);
  const std::string what = difference(old, fresh);
  return what.empty() ? "same" : "differs: " + what;
}

std::vector<std::byte> contents(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace
}  // namespace ringside::dif

int main(int argc, char** argv) {
  bool differs = false;
  for (int i = 1; i < argc; ++i) {
    const std::string outcome = ringside::dif::check(ringside::dif::contents(argv[i]));
    std::printf("%s: %s\n", argv[i], outcome.c_str());
    differs = differs || outcome.starts_with("differs");
  }
  return differs ? 1 : 0;
}
