// DOF that the reader and the verifier accept runs to an end, whatever it computes. The mutator
// changes instructions and constants of a program that can be read, because blind changes to the
// file hardly ever reach the evaluator.
#include <cstdint>
#include <cstring>
#include <random>
#include <span>

#include "dif/bind/bind.h"
#include "dif/d/testing/program_runner.h"
#include "dif/dof/dof.h"
#include "dif/engine/engine.h"
#include "dif/program/insn.h"
#include "dif/verify/verify.h"

namespace ringside {
namespace {

constexpr std::size_t kMostBytes = 64 << 10;    // longer inputs only repeat what shorter ones find
constexpr std::uint64_t kMostLoopTrips = 1024;  // the verifier's limit is too long for a fuzzer

void run(dif::VerifiedProgram program) {
  dif::EngineOptions options;
  options.buffer_size = options.aggregation_size = options.dynamic_size = 16 << 10;
  options.scratch_size = 8 << 10;
  const std::size_t clauses = program.program().clauses.size();
  dif::Engine engine(std::move(program), options, 2);
  const dif::ProbeId probe{1}, error{2};
  for (std::uint32_t i = 0; i < clauses; ++i) {
    engine.enable(i, i % 4 == 3 ? error : probe, {"fbt", "vmlinux", "vfs_read", "entry"});
  }
  engine.set_error_probe(error);
  const d::FakeGuest guest;
  for (std::uint32_t i = 0; i < 4; ++i) engine.fire(probe, {i % 2, 1000 + i, 0}, guest);
  (void)engine.take_quiescent();
}

std::vector<dif::Difo*> objects(dif::Program& program) {
  std::vector<dif::Difo*> found;
  for (dif::Clause& clause : program.clauses) {
    if (clause.predicate) found.push_back(&*clause.predicate);
    for (dif::Action& action : clause.actions) {
      for (dif::Difo& difo : action.arguments) found.push_back(&difo);
    }
  }
  return found;
}

/// A word that is likely to pass: a known opcode, small fields.
std::uint32_t likely_word(std::mt19937& random, std::size_t pc) {
  for (;;) {
    const auto info = dif::opcode_info(static_cast<std::uint8_t>(1 + random() % 80));
    if (!info) continue;
    const auto index = static_cast<unsigned>(random() % 3 == 0   ? 0x100 + random() % 0x22
                                             : random() % 3 == 0 ? 0x500 + random() % 4
                                                                 : random() % 50);
    const auto r = [&] { return static_cast<unsigned>(random() % 8); };
    switch (info->form) {
      case dif::Form::Branch:
        return dif::encode_branch(info->op, static_cast<std::uint32_t>(pc + 1 + random() % 4));
      case dif::Form::SetInteger:
      case dif::Form::SetString:
      case dif::Form::LoadVariable:
      case dif::Form::StoreVariable:
      case dif::Form::Call: return dif::encode_indexed(info->op, index, r());
      case dif::Form::Push: return dif::encode(info->op, r() % 2, r(), r());
      case dif::Form::None: return dif::encode(info->op);
      case dif::Form::Rr:
      case dif::Form::Load:
      case dif::Form::Store: return dif::encode(info->op, r(), 0, r());
      case dif::Form::Compare: return dif::encode(info->op, r(), r(), 0);
      case dif::Form::LoadArray: return dif::encode(info->op, r() % 3, r(), r());
      default: return dif::encode(info->op, r(), r(), r());
    }
  }
}

void change(dif::Program& program, std::mt19937& random) {
  const auto all = objects(program);
  if (all.empty()) return;
  dif::Difo& difo = *all[random() % all.size()];
  const std::size_t at = difo.text.empty() ? 0 : random() % difo.text.size();
  switch (random() % 5) {
    case 0:
      if (!difo.integers.empty()) {
        difo.integers[random() % difo.integers.size()] =
            random() % 2 == 0 ? d::kGuestBase + random() % 0x500 : random();
      }
      break;
    case 1:
      if (difo.text.size() > 1) difo.text[at] ^= 1u << random() % 32;
      break;
    case 2: difo.result.kind = static_cast<dif::ValueKind>(random() % 11); break;
    default:
      difo.text.insert(difo.text.begin() + static_cast<std::ptrdiff_t>(at),
                       likely_word(random, at));
  }
}

}  // namespace
}  // namespace ringside

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  using namespace ringside;
  std::mt19937 random(seed);
  auto program = dif::read_dof(std::as_bytes(std::span(data, size)));
  if (!program || random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  for (auto changes = 1 + random() % 4; changes > 0; --changes) change(*program, random);
  const auto bytes = dif::write_dof(*program);
  if (bytes.empty() || bytes.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringside;
  if (size > kMostBytes) return 0;
  auto program = dif::read_dof(std::as_bytes(std::span(data, size)));
  if (!program) return 0;
  for (dif::Clause& clause : program->clauses) {
    if (clause.repeat && clause.repeat->limit > kMostLoopTrips) return 0;
  }
  static d::FakeKernel kernel;
  auto bound = dif::bind(*program, kernel);
  if (!bound) return 0;
  auto verified = dif::verify_program(std::move(*bound));
  if (verified) run(std::move(*verified));
  return 0;
}
