// Random sets of probes, of 1 to 2,000, that are armed and disarmed beside each other while the
// guest runs into them, in live guests: the promises of probe_armer.h, to the last firing.
// In the guest, programs number their calls (numbered.c): each reads n bytes, then writes n bytes,
// then tells the kernel of n, in whose memory we see how far it is. The reads are always traced;
// the writes are traced by what is switched. An enabling has to see all calls of a program from one
// number to another: none before it began, none after it ended, none left out between. So it has in
// guests where traps are recorded, and fire later.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/tracer/tracer.h"
#include "tests/live/live_guest.h"
#include "tests/live/task_stacks.h"
#include "vmm/base/printable.h"
#include "vmm/linux/layout.h"
#include "vmm/page_walk.h"

namespace ringside::live {
namespace {

using namespace dif::testing;
using providers::Probe;
using providers::Recording;
using providers::TrapForm;

constexpr unsigned kTimes = 60;
constexpr double kLargestSet = 2000;
constexpr std::size_t kMostWhereRoomIsScarce = 3000;
constexpr unsigned kMostPairs = 20;
constexpr unsigned kMostWaiting = 3;  // probes of a set whose traps wait where others record
constexpr std::chrono::microseconds kLongestWait{2000};
constexpr const char* kSharedEntry = "__x64_sys_write";  // where syscall::write:entry stands, too
constexpr std::int64_t kFirstSlack = 50'000;             // ns, of each new process
constexpr unsigned kRdx = 12;                            // as D numbers the registers

/// Clauses: where a probe has the number, or that nobody asks. The last one cannot be recorded.
enum Clause : std::uint32_t { kInArg2, kInArg1, kInRdx, kUnnumbered, kWaits };
/// Aggregations: those of numbers have the keys probe, process; the others have the probe.
enum Aggregation : std::uint32_t { kCount, kLeast, kMost, kFired, kDepth };

dif::Program program_of_sets() {
  const dif::Difo id = builtin(dif::Builtin::Id), pid = builtin(dif::Builtin::Pid);
  const auto numbered = [&](const dif::Difo& number) {
    return clause({aggregate(kCount, {id, pid}), aggregate(kLeast, {id, pid, number}),
                   aggregate(kMost, {id, pid, number})});
  };
  using dif::AggregateFunction;
  using dif::Opcode;
  const dif::Difo rdx =
      difo({dif::encode_indexed(Opcode::Setx, 0, 1),
            dif::encode(Opcode::Ldga, dif::kRegsArray, 1, 2), dif::encode_return(2)});
  dif::Difo with_index = rdx;
  with_index.integers = {kRdx};
  return program({numbered(builtin(dif::Builtin::Arg2)), numbered(builtin(dif::Builtin::Arg1)),
                  numbered(with_index), clause({aggregate(kFired, {id})}),
                  clause({aggregate(kFired, {id}),
                          aggregate(kDepth, {id, builtin(dif::Builtin::Ustackdepth)})})},
                 {{"", AggregateFunction::Count, {kLong, kLong}, 0},
                  {"", AggregateFunction::Min, {kLong, kLong}, 0},
                  {"", AggregateFunction::Max, {kLong, kLong}, 0},
                  {"", AggregateFunction::Count, {kLong}, 0},
                  {"", AggregateFunction::Max, {kLong}, 0}});
}

/// RINGSIDE_TIMES asks for more.
unsigned how_often() {
  const char* const wanted = std::getenv("RINGSIDE_TIMES");
  return wanted == nullptr ? kTimes : static_cast<unsigned>(std::atoi(wanted));
}

/// A shell's words that make the program of numbered.c, which lies beside this one. Empty if it was
/// not built.
std::string make_numbered() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  std::ifstream file(self.parent_path() / "numbered", std::ios::binary);
  if (!file) return "";
  std::string words = "printf '";
  for (std::istreambuf_iterator<char> at(file), end; at != end; ++at) {
    words += fmt::format("\\x{:02x}", static_cast<unsigned char>(*at));
  }
  return words + "' >/bin/numbered; chmod 755 /bin/numbered";
}

/// The calls of one program that were seen.
struct Seen {
  std::uint64_t count = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
};
using ByProgram = std::map<std::int64_t, Seen>;         // by process
using Progress = std::map<std::int64_t, std::int64_t>;  // the number that is next, by process

struct Guest {
  const char* image;
  unsigned vcpus;
  TrapForm traps = TrapForm::Breakpoints;
  Recording recording = Recording::No;
  bool as_is = false;  // so that trap points share slots
};

class RandomSets : public testing::TestWithParam<Guest> {
 protected:
  /// One enabling, which begins and ends as a whole.
  struct Set {
    std::vector<Probe> probes;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // probes of one address
    Progress before, begun;
    std::uint64_t lost = 0;  // by then
  };

  void SetUp() override {
    const auto image = find_live_image(GetParam().image);
    if (!image) GTEST_SKIP() << image.error().message;
    // A loaded host may let a vCPU wait for half a minute. The kernel is not to find its TSC bad
    // and rewrite sched_clock_cpu() then: QEMU 7.2 may execute what stood there before, and the
    // guest panics, traced or not.
    auto guest = LiveGuest::boot(
        *image, GetParam().vcpus,
        {"nosoftlockup rcupdate.rcu_cpu_stall_suppress=1 tsc=reliable", GetParam().as_is});
    ASSERT_TRUE(guest) << guest.error().message;
    guest_ = std::move(*guest);
    let_programs_begin();
    if (HasFatalFailure()) return;
    auto tracer =
        providers::Tracer::attach(&guest_->machine(), &guest_->kernel(),
                                  {.traps = GetParam().traps, .recording = GetParam().recording});
    ASSERT_TRUE(tracer) << tracer.error().message;
    tracer_ = std::move(*tracer);
    engine_.emplace(*dif::verify_program(program_of_sets()), dif::EngineOptions{},
                    tracer_->vcpu_count());
    publish();
  }
  void TearDown() override {
    if (tracer_) tracer_->stop();
  }

  std::string ask(const std::string& command) {
    auto said = guest_->run(command);
    EXPECT_TRUE(said) << command << ": " << said.error().message;
    return said.value_or("");
  }

  /// Lets programs begin: one that numbers its calls for each vCPU, and others that call anything.
  void let_programs_begin() {
    const std::string make = make_numbered();
    ASSERT_FALSE(make.empty()) << "there is no program `numbered` beside this one: build it";
    ask(make);
    std::istringstream said(
        ask(fmt::format("dmesg -c >/dev/null; touch /tmp/go; for n in $(seq {}); do numbered"
                        " </dev/null >/dev/null 2>&1 & echo $!; done; (while [ -e /tmp/go ]; do"
                        " dd if=/dev/zero of=/tmp/file bs=512 count=200; cat /proc/*/stat; done;"
                        " touch /tmp/over) </dev/null >/dev/null 2>&1 &",
                        GetParam().vcpus)));
    const auto offset =
        guest_linux::offset_of(guest_->kernel().types(), "task_struct", {"timer_slack_ns"});
    ASSERT_TRUE(offset);
    const vmm::PageTableReader reader(guest_->machine().memory(), guest_->kernel().table());
    for (std::int32_t process = 0; said >> process;) {
      const auto task = find_task(reader, guest_->kernel(), process);
      ASSERT_TRUE(task) << process;
      programs_.emplace(process, task->wrapping_add(*offset));
    }
    ASSERT_EQ(programs_.size(), GetParam().vcpus);
    ASSERT_TRUE(wait_for_programs()) << printable(guest_->machine().status().console_tail());
  }

  std::vector<Probe> find(Clause clause, const dif::ProbeDescription& pattern) {
    std::vector<Probe> probes;
    EXPECT_TRUE(tracer_->for_each_probe(pattern, [&](const Probe& probe) {
      if (!known_.insert(probe.id.value).second) return;
      engine_->enable(clause, probe.id, probe.name);
      probes.push_back(probe);
    }));
    return probes;
  }
  bool records() const { return GetParam().recording != Recording::No; }
  void enable_always(Clause clause, const dif::ProbeDescription& pattern) {
    const auto found = find(clause, pattern);
    ASSERT_EQ(found.size(), 1u) << pattern.function;
    ASSERT_TRUE(tracer_->enable(found[0])) << pattern.function;
    always_.push_back(found[0].id.value);
  }
  void publish() {
    enable_always(kInArg2, {"fbt", "vmlinux", "vfs_read", "entry"});
    steady_ = always_.at(0);
    if (records()) {
      // Its traps copy the arguments, and so can those of sets.
      enable_always(kInArg2, {"syscall", "", "read", "entry"});
      // Places of these have no other probes in sets, as one that records cannot come to wait.
      waiting_ = find(kWaits, {"fbt", "vmlinux", "security_*", "entry"});
      ASSERT_FALSE(waiting_.empty());
    }
    const auto add = [this](Clause clause, const dif::ProbeDescription& pattern) {
      auto found = find(clause, pattern);
      EXPECT_FALSE(found.empty()) << pattern.provider << ":" << pattern.function;
      numbered_.insert(numbered_.end(), found.begin(), found.end());
    };
    for (const char* const function : {"vfs_write", "ksys_write"}) {
      add(kInArg2, {"fbt", "vmlinux", function, "entry"});
      add(kInArg1, {"fbt", "vmlinux", function, "return"});
      // The first instructions, which do nothing: their probes stand where that of entry stands.
      add(kInRdx, {"instr", "vmlinux", function, "other-[04]"});
    }
    add(kInArg2, {"syscall", "", "write", "entry"});
    add(kInArg1, {"syscall", "", "write", "return"});
    others_ = find(kUnnumbered, {"fbt", "vmlinux", "", ""});
    // Traps of one place are recorded by one list, which is that of the first probe there.
    if (records()) {
      std::erase_if(others_, [](const Probe& one) { return one.name.function == kSharedEntry; });
    }
    std::map<std::string, Probe> entries;
    for (const Probe& probe : others_) {
      if (probe.name.name == "entry") entries.emplace(probe.name.function, probe);
    }
    for (const char* const functions : {"vfs_*", "do_*", "*_read"}) {
      for (const Probe& first : find(kUnnumbered, {"instr", "vmlinux", functions, "other-0"})) {
        const auto entry = entries.find(first.name.function);
        if (entry != entries.end()) pairs_.emplace_back(entry->second, first);
      }
    }
    ASSERT_FALSE(pairs_.empty());
    const auto inside = find(kUnnumbered, {"instr", "vmlinux", "vfs_*", ""});
    others_.insert(others_.end(), inside.begin(), inside.end());
    // Room is never given back, so the same ones have to come again.
    if (!GetParam().as_is) return;
    std::shuffle(others_.begin(), others_.end(), random_);
    others_.resize(std::min(others_.size(), kMostWhereRoomIsScarce));
  }

  std::size_t random_below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }
  /// Of any size, small as often as large, with nothing that another set has.
  Set choose() {
    const double largest = std::log(kLargestSet);
    const auto size = static_cast<std::size_t>(
        std::lround(std::exp(std::uniform_real_distribution<double>(0, largest)(random_))));
    Set set;
    std::vector<Probe> wanted;
    const auto take = [&](const Probe& probe) {
      if (!enabled_.insert(probe.id.value).second) return false;
      set.probes.push_back(probe);
      return true;
    };
    for (const Probe& probe : numbered_) {
      if (set.probes.size() < size && random_below(2) == 0) take(probe);
    }
    for (std::size_t n = random_below(kMostPairs); n > 0 && set.probes.size() + 2 <= size; --n) {
      const auto& [entry, first] = pairs_[random_below(pairs_.size())];
      const bool one = take(entry), other = take(first);
      if (one && other) set.pairs.emplace_back(entry.id.value, first.id.value);
    }
    for (std::size_t n = random_below(kMostWaiting + 1);
         n > 0 && !waiting_.empty() && set.probes.size() < size; --n) {
      take(waiting_[random_below(waiting_.size())]);
    }
    while (set.probes.size() < size) take(others_[random_below(others_.size())]);
    std::shuffle(set.probes.begin(), set.probes.end(), random_);
    return set;
  }

  /// Merges what has fired by now.
  void take(const dif::TraceData& trace_data) {
    EXPECT_TRUE(trace_data.faults.empty());
    for (const auto& drops : trace_data.drops) {
      for (const std::uint64_t each : drops) EXPECT_EQ(each, 0u);
    }
    for (const dif::AggregateEntry& entry : trace_data.aggregates) {
      std::int64_t key[2] = {};
      ASSERT_LE(entry.key.size(), sizeof key);
      std::memcpy(key, entry.key.data(), entry.key.size());
      const auto id = static_cast<std::uint32_t>(key[0]);
      EXPECT_TRUE(enabled_.contains(id) || std::ranges::count(always_, id) != 0)
          << engine_->probe_name({id}).function << " fired while it was disabled";
      merge(entry, id, key[1]);
    }
  }
  void merge(const dif::AggregateEntry& entry, std::uint32_t id, std::int64_t process) {
    const std::int64_t value = entry.words[0];
    if (entry.aggregation == kDepth) return;
    if (entry.aggregation == kFired) {
      fired_[id] += static_cast<std::uint64_t>(value);
      firings_ += static_cast<std::uint64_t>(value);
      return;
    }
    Seen& seen = seen_[id][process];
    if (entry.aggregation == kCount) {
      seen.count += static_cast<std::uint64_t>(value);
      firings_ += static_cast<std::uint64_t>(value);
    }
    if (entry.aggregation == kLeast) seen.least = std::min(seen.least, value);
    if (entry.aggregation == kMost) seen.most = std::max(seen.most, value);
  }
  Progress progress() {
    const vmm::PageTableReader reader(guest_->machine().memory(), guest_->kernel().table());
    Progress now;
    for (const auto& [process, number_at] : programs_) {
      const auto number = load<std::int64_t>(reader, number_at);
      EXPECT_TRUE(number);
      now[process] = number.value_or(0) + 1;
    }
    return now;
  }

  /// Until each has told a number.
  bool wait_for_programs() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    for (;;) {
      const Progress now = progress();
      const auto runs = [](const auto& each) { return each.second != kFirstSlack + 1; };
      if (std::ranges::all_of(now, runs)) return true;
      const bool is_gone = guest_->machine().state() != vmm::MachineState::Running;
      if (is_gone || std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  /// The guest's last words, if it is gone.
  std::string console() { return "; its console: " + guest_->machine().status().console_tail(); }

  void begin(Set& set) {
    set = choose();
    take(engine_->take());
    set.lost = tracer_->lost_firings();
    set.before = progress();
    const auto added = tracer_->add_probes(set.probes);
    ASSERT_TRUE(added) << added.error().message << console();
    set.begun = progress();
    armed_ += set.probes.size();
  }
  void end(Set& set) {
    const Progress ends = progress();
    const auto removed = tracer_->remove_probes(set.probes);
    ASSERT_TRUE(removed) << removed.error().message << console();
    const Progress after = progress();
    take(engine_->take());
    if (tracer_->lost_firings() == set.lost) {  // else the host was silent
      judge(set, ends, after);
    } else {
      unjudged_ += 1;
    }
    for (const Probe& probe : set.probes) {
      enabled_.erase(probe.id.value);
      seen_.erase(probe.id.value);
      fired_.erase(probe.id.value);
    }
    set = {};
  }
  void judge(const Set& set, const Progress& ends, const Progress& after) {
    for (const Probe& probe : set.probes) {
      if (std::none_of(numbered_.begin(), numbered_.end(),
                       [&](const Probe& each) { return each.id == probe.id; })) {
        continue;
      }
      for (const auto& [process, number_at] : programs_) {
        SCOPED_TRACE(fmt::format("{}:{}:{}, process {}", probe.name.provider, probe.name.function,
                                 probe.name.name, process));
        const Progress& before = set.before;
        check(seen_[probe.id.value][process], before.at(process), set.begun.at(process),
              ends.at(process), after.at(process));
      }
    }
    for (const auto& [entry, first] : set.pairs) {
      EXPECT_EQ(fired_[entry], fired_[first]) << engine_->probe_name({entry}).function;
    }
  }
  /// Of one program's writes. The arguments are its progress before the enabling was asked for,
  /// after it had begun, before its end was asked for, and after its end. Then the write of that
  /// number may be under way, or over, those before it are over, and later ones have not begun.
  void check(const Seen& seen, std::int64_t before, std::int64_t begun, std::int64_t ends,
             std::int64_t after) {
    if (seen.count > 0) {
      EXPECT_EQ(static_cast<std::int64_t>(seen.count), seen.most - seen.least + 1)
          << "from " << seen.least << " to " << seen.most;
      EXPECT_GE(seen.least, before) << "fired before it was enabled";
      EXPECT_LE(seen.most, after) << "fired after it was disabled";
    }
    if (begun + 1 <= ends - 1) {
      ASSERT_GT(seen.count, 0u) << "lost from " << begun + 1 << " to " << ends - 1;
      EXPECT_LE(seen.least, begun + 1) << "lost at the beginning";
      EXPECT_GE(seen.most, ends - 1) << "lost at the end";
      whole_ += 1;
    }
  }

  std::unique_ptr<LiveGuest> guest_;
  std::unique_ptr<providers::Tracer> tracer_;
  std::optional<dif::Engine> engine_;
  const std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  /// The processes that number their calls, and where the kernel has the number.
  std::map<std::int64_t, GuestVirt> programs_;
  std::set<std::uint32_t> known_;      // to the engine
  std::vector<std::uint32_t> always_;  // enabled all the time
  std::uint32_t steady_ = 0;           // of those: what numbers the reads
  std::vector<Probe> numbered_, waiting_, others_;
  std::vector<std::pair<Probe, Probe>> pairs_;  // of one address each
  std::set<std::uint32_t> enabled_;             // now, by the sets
  std::map<std::uint32_t, ByProgram> seen_;
  std::map<std::uint32_t, std::uint64_t> fired_;
  std::uint64_t firings_ = 0, armed_ = 0, whole_ = 0, unjudged_ = 0;
};

TEST_P(RandomSets, FireEachCallInsideTheirEnablingAndNoneOutside) {
  ASSERT_TRUE(tracer_->start(*engine_));
  const auto started = std::chrono::steady_clock::now();
  std::array<Set, 2> sets;  // the one begins and ends while the other stays
  unsigned n = 0;
  for (; n < how_often() && !HasFailure(); ++n) {
    SCOPED_TRACE(fmt::format("seed {}, enabling {}", seed_, n));
    Set& set = sets[n % 2];
    if (!set.probes.empty()) end(set);
    if (!HasFatalFailure()) begin(set);
    std::this_thread::sleep_for(kLongestWait * random_below(1000) / 1000);
  }
  for (Set& set : sets) {
    if (!set.probes.empty() && !HasFailure()) end(set);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  ask("rm /tmp/go; until [ -e /tmp/over ]; do usleep 10000; done; while pidof numbered >/dev/null; "
      "do"
      " usleep 10000; done");
  tracer_->stop();
  take(engine_->take_quiescent());

  const std::uint64_t recorded = tracer_->statistics().kernel.recorded;
  std::cout << fmt::format(
      "{} enablings of {} probes in all, {:.0f} s, {} firings; {} whole runs of calls; the guest"
      " stood still {}; {} traps recorded; the host was silent for {} firings, {} enablings not"
      " judged\n",
      n, armed_, took.count(), firings_, whole_, guest_->machine().stops().pauses().describe(),
      recorded, tracer_->lost_firings(), unjudged_);
  EXPECT_TRUE(!records() || recorded > firings_ / 2);
  std::uint64_t missing = 0;  // of what fires all the time
  for (const auto& [process, number_at] : programs_) {
    const Seen& seen = seen_[steady_][process];
    ASSERT_GT(seen.count, 0u);
    missing += static_cast<std::uint64_t>(seen.most - seen.least + 1) - seen.count;
  }
  EXPECT_LE(missing, tracer_->lost_firings());
  EXPECT_GT(whole_, 0u);
  for (const std::string& notice : tracer_->take_notices()) ADD_FAILURE() << notice;
  EXPECT_EQ(ask("dmesg | grep -iE 'bug|warn|oops|stall|int3|unable|fault|traps:'; true"), "");
}

INSTANTIATE_TEST_SUITE_P(
    Guests, RandomSets,
    testing::Values(Guest{"debian-6.1", 2}, Guest{"debian-6.1", 4}, Guest{"debian-6.12", 2},
                    Guest{"debian-6.12", 4}, Guest{"debian-6.1", 4, TrapForm::JumpsWhereTheyMay},
                    Guest{"debian-6.12", 2, TrapForm::JumpsWhereTheyMay},
                    Guest{"debian-6.1", 4, TrapForm::JumpsWhereTheyMay, Recording::Auto},
                    Guest{"debian-6.12", 4, TrapForm::Breakpoints, Recording::Auto},
                    Guest{"debian-6.12", 2, TrapForm::Breakpoints, Recording::Auto, true},
                    Guest{"debian-6.1", 4, TrapForm::JumpsWhereTheyMay, Recording::No, true}),
    [](const auto& made) {
      std::string name = made.param.image;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
      name += "_on_" + std::to_string(made.param.vcpus);
      const bool jumps = made.param.traps == TrapForm::JumpsWhereTheyMay;
      const bool records = made.param.recording != Recording::No;
      return name + (jumps ? "_by_jumps" : "") + (records ? "_recorded" : "") +
             (made.param.as_is ? "_with_shared_slots" : "");
    });

}  // namespace
}  // namespace ringside::live
