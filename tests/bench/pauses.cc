// How long a guest stands still while all entry or return probes of its kernel are placed and taken
// away, where its text can be written directly, as under KVM. No machine is needed that has KVM: a
// guest boots under TCG and is stopped for good. Its memory then is any guest's; what is left to do
// in a pause is the host's work alone, at the host's speed. To stop vCPUs and let them go is not in
// it.
//
//   build/tests/bench/pauses [IMAGE [VCPUS [TIMES [NAME]]]]    (debian-6.1, 2, 5, entry)
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/tracer/tracer.h"
#include "tests/live/live_guest.h"
#include "vmm/inert_machine_for_tests.h"

namespace ringside {
namespace {

using namespace dif::testing;
using providers::TrapForm;

using Clock = std::chrono::steady_clock;

/// A guest that stands still, with code that is written as any memory.
class Standing final : public vmm::InertMachine {
 public:
  Standing(vmm::Machine& guest, vmm::PausedMachine& paused) : guest_(guest), paused_(paused) {}
  vmm::GuestMemory& memory() override { return guest_.memory(); }
  std::optional<vmm::GuestMemory::Extent> reserved_memory() const override {
    return guest_.reserved_memory();
  }
  /// Of the pauses since the last call, the longest: ms.
  double take_longest() { return std::exchange(longest_, 0); }

 protected:
  unsigned count() const override { return guest_.vcpu_count(); }
  Result<Registers> registers(unsigned vcpu) override { return paused_.registers(vcpu); }
  Result<void> pause() override {
    if (open_++ == 0) since_ = Clock::now();
    return {};
  }
  Result<void> resume() override {
    const std::chrono::duration<double, std::milli> stood = Clock::now() - since_;
    if (--open_ == 0) longest_ = std::max(longest_, stood.count());
    return {};
  }
  bool is_needed() const override { return false; }
  Result<void> write(std::span<const vmm::CodeWrite> writes) override {
    if (const auto refused = vmm::write_through(memory(), writes)) {
      return fail(ErrorCode::Io, fmt::format("{:#x} cannot be written", refused->raw()));
    }
    return {};
  }

 private:
  vmm::Machine& guest_;
  vmm::PausedMachine& paused_;
  unsigned open_ = 0;
  Clock::time_point since_;
  double longest_ = 0;
};

struct Outcome {
  std::size_t probes = 0;
  std::uint64_t places = 0, jumps = 0;
  double placing = 0, taking_away = 0;  // the longest pause, ms
};

Result<Outcome> place_all(live::LiveGuest& guest, vmm::PausedMachine& paused,
                          const std::string& name, TrapForm form) {
  Standing machine(guest.machine(), paused);
  const auto tracer = TRY(providers::Tracer::attach(&machine, &guest.kernel(), {.traps = form}));
  dif::Engine engine(
      TRY(dif::verify_program(
          program({clause({aggregate(0, {})})}, {{"", dif::AggregateFunction::Count, {}, 0}}))),
      dif::EngineOptions{}, tracer->vcpu_count());
  std::vector<providers::Probe> probes;
  TRY(tracer->for_each_probe({"fbt", "vmlinux", "", name},
                             [&](const providers::Probe& probe) { probes.push_back(probe); }));
  Outcome outcome;
  for (const providers::Probe& probe : probes) {
    if (!tracer->enable(probe)) continue;  // few; -l -v says why
    engine.enable(0, probe.id, probe.name);
    ++outcome.probes;
  }
  TRY(tracer->start(engine));
  outcome.placing = machine.take_longest();
  outcome.places = tracer->statistics().kernel.armed;
  outcome.jumps = tracer->statistics().kernel.jumps;
  tracer->stop();
  outcome.taking_away = machine.take_longest();
  return outcome;
}

std::string best_and_median(std::vector<double> times) {
  std::ranges::sort(times);
  return fmt::format("{:>8.1f}{:>8.1f}", times.front(), times[times.size() / 2]);
}

Result<void> measure(const std::string& image, unsigned vcpus, unsigned times,
                     const std::string& name) {
  auto guest = TRY(live::LiveGuest::boot(TRY(live::find_live_image(image)), vcpus));
  auto paused = TRY(vmm::PausedMachine::pause(guest->machine()));
  fmt::print(
      "{}, {} vCPUs, fbt:vmlinux::{}\n{:12}{:>8}{:>8}{:>8}{:>16}{:>16}   ms, best and median of "
      "{}\n",
      image, vcpus, name, "", "probes", "places", "jumps", "placing", "taking away", times);
  for (const bool jumps : {false, true}) {
    std::vector<double> placing, taking_away;
    Outcome outcome;
    for (unsigned n = 0; n < times; ++n) {
      outcome = TRY(place_all(*guest, paused, name,
                              jumps ? TrapForm::JumpsWhereTheyMay : TrapForm::Breakpoints));
      placing.push_back(outcome.placing);
      taking_away.push_back(outcome.taking_away);
    }
    fmt::print("{:12}{:>8}{:>8}{:>8}{}{}\n", jumps ? "jumps" : "breakpoints", outcome.probes,
               outcome.places, outcome.jumps, best_and_median(placing),
               best_and_median(taking_away));
  }
  return {};
}

}  // namespace
}  // namespace ringside

int main(int argc, char** argv) {
  const auto number = [&](int n, unsigned otherwise) {
    return argc > n ? static_cast<unsigned>(std::atoi(argv[n])) : otherwise;
  };
  const auto done = ringside::measure(argc > 1 ? argv[1] : "debian-6.1", number(2, 2),
                                      std::max(number(3, 5), 1U), argc > 4 ? argv[4] : "entry");
  if (!done) fmt::print(stderr, "pauses: {}\n", done.error().message);
  return done ? 0 : 1;
}
