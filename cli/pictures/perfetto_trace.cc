// In this file, top to bottom: what a probe is, tracks, a firing from begin() to its events, slices
// of threads, what runs on vCPUs, requests, the end.
#include "cli/pictures/perfetto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/pictures/svg.h"

namespace ringside::cli {
namespace {

using EventType = PerfettoFile::EventType;
using NameKind = PerfettoFile::NameKind;

/// Events of a thread that come so much too early have the time of the one before them. Clocks of
/// vCPUs differ by less. Records of a speculation, which come when it is committed, by more.
constexpr std::uint64_t kSlack = 1'000;           // ns
constexpr std::size_t kLongestCounterName = 200;  // characters

/// A word at the end of a probe's name that begins something, or ends it. Of one group are those
/// that may belong together.
struct PairWord {
  std::string_view text;
  bool begins;
  char group;
};
constexpr std::array<PairWord, 8> kPairWords{{{"entry", true, 'e'},
                                              {"enter", true, 'e'},
                                              {"return", false, 'e'},
                                              {"exit", false, 'e'},
                                              {"start", true, 's'},
                                              {"done", false, 's'},
                                              {"begin", true, 'b'},
                                              {"end", false, 'b'}}};

/// Whether `name` is the word, or ends in it: "query-start", "irq_handler_entry".
bool has_word(std::string_view name, std::string_view word) {
  if (!name.ends_with(word)) return false;
  if (name.size() == word.size()) return true;
  const char before = name[name.size() - word.size() - 1];
  return before == '-' || before == '_';
}

/// Null: it is neither a beginning nor an end.
const PairWord* pair_word(const dif::ProbeDescription& probe) {
  const auto* const found = std::ranges::find_if(
      kPairWords, [&](const PairWord& word) { return has_word(probe.name, word.text); });
  return found == kPairWords.end() ? nullptr : found;
}

/// The part before the word: "query"; empty if the word is all.
std::string_view without_word(std::string_view name, std::string_view word) {
  return name.substr(0, name.size() - word.size() - (name.size() == word.size() ? 0 : 1));
}

/// These fire on different threads.
bool is_of_request(const dif::ProbeDescription& probe) {
  return probe.provider == "io" && (probe.name == "start" || probe.name == "done");
}

/// These fire on no thread of the guest.
bool fires_on_host(const dif::ProbeDescription& probe) {
  return probe.provider == "dtrace" ||
         (probe.provider == "profile" && probe.name.starts_with("tick-"));
}

/// Linux has no numbers from kPidsOfMachine on, but a guest can make up any.
std::int32_t shown_number(std::uint32_t first, std::uint32_t number) {
  return static_cast<std::int32_t>(first + number % PerfettoTrace::kPidsOfMachine);
}

std::string instant_name(const dif::ProbeDescription& probe) {
  return probe.function.empty() ? probe.name : probe.function + ':' + probe.name;
}

/// The time of the next event on a track, which is later than all before it. Empty: it is too early
/// for that.
std::optional<std::uint64_t> next_time(std::uint64_t& last, std::uint64_t time) {
  if (time <= last && last - time > kSlack) return {};
  last = std::max(last + 1, time);
  return last;
}

}  // namespace

PerfettoTrace::Machine* PerfettoTrace::machine(std::string_view name) {
  const auto known = std::ranges::find(machines_, name, &Machine::name);
  if (known != machines_.end()) return &*known;
  if (machines_.size() == kMostMachines) return nullptr;
  Machine& made = machines_.emplace_back();
  made.name = name;
  made.first_pid = static_cast<std::uint32_t>(machines_.size() - 1) * kPidsOfMachine;
  return &made;
}

PerfettoTrace::Probe& PerfettoTrace::probe(const dif::ProbeDescription& name) {
  const auto [at, added] = probes_.try_emplace(name.to_string());
  Probe& probe = at->second;
  if (!added) return probe;
  probe.has_thread = !fires_on_host(name);
  probe.category = file_.intern(NameKind::Category, name.provider);
  probe.name = file_.intern(NameKind::Event, instant_name(name));
  if (name.provider == "sched" && name.name == "on-cpu") {
    probe.role = Role::OnCpu;
  } else if (name.provider == "sched" && name.name == "off-cpu") {
    probe.role = Role::OffCpu;
    probe.prefix = "off-cpu";
  } else if (const PairWord* const word = pair_word(name)) {
    const std::string_view what = without_word(name.name, word->text);
    // A function has its own entry and return. Other beginnings and ends may lie in two functions.
    const bool of_function = what.empty() && word->group == 'e';
    const auto [pair, is_new] = pairs_.try_emplace(
        fmt::format("{}:{}:{}{}", name.provider,
                    of_function ? name.module + ':' + name.function : "", word->group, what));
    if (is_new) {
      const bool has_function = of_function && !name.function.empty();
      const std::string_view whole = has_function ? name.function : name.provider;
      pair->second.name = file_.intern(NameKind::Event, what.empty() ? whole : what);
      pair->second.is_syscall = name.provider == "syscall";
    }
    probe.pair = &pair->second;
    if (is_of_request(name)) {
      probe.role = word->begins ? Role::Request : Role::RequestDone;
    } else {
      probe.role = word->begins ? Role::Begin : Role::End;
    }
    if (!word->begins) probe.prefix = word->text;
  }
  return probe;
}

std::uint64_t PerfettoTrace::note_name(std::string_view name) {
  std::string text;
  if (!told_.probe->prefix.empty()) text.append(told_.probe->prefix) += ' ';
  text += name;
  const auto [at, added] = note_names_.try_emplace(std::move(text));
  if (added) at->second = file_.intern(NameKind::Note, at->first);
  return at->second;
}

std::uint64_t PerfettoTrace::track_of(Machine& machine) {
  if (machine.track == 0) {
    machine.track = file_.new_track();
    file_.describe_track(machine.track, 0, machine.name.empty() ? "ringside" : machine.name);
  }
  return machine.track;
}

PerfettoTrace::Vcpu& PerfettoTrace::vcpu_of(Machine& machine, std::uint32_t number) {
  const auto [at, added] = machine.vcpus.try_emplace(number);
  if (added) {
    at->second.number = file_.new_track();
    file_.describe_track(at->second.number, track_of(machine), fmt::format("vCPU {}", number));
  }
  return at->second;
}

PerfettoTrace::Process& PerfettoTrace::process_of(Machine& machine, const Thread& thread) {
  const auto [at, added] = machine.processes.try_emplace(thread.pid);
  Process& process = at->second;
  if (added) process.track = file_.new_track();
  // Other threads of the process may have names of their own.
  if (added || (thread.pid == thread.tid && process.name != thread.name)) {
    process.name = thread.name;
    file_.describe_process(
        process.track, shown_number(machine.first_pid, thread.pid),
        machine.name.empty() ? process.name : machine.name + ": " + process.name);
  }
  return process;
}

/// Of the thread that fired. All vCPUs' idle threads have the number 0, so each has a track of its
/// vCPU.
PerfettoTrace::ThreadTrack& PerfettoTrace::thread_of(const Firing& firing, Vcpu& vcpu) {
  const Thread& thread = *firing.thread;
  Machine& machine = firing.machine;
  if (thread.tid == 0) {
    if (vcpu.idle.number == 0) {
      vcpu.idle.number = file_.new_track();
      file_.describe_track(vcpu.idle.number, track_of(machine),
                           fmt::format("vCPU {} while idle", firing.vcpu));
    }
    return vcpu.idle;
  }
  const std::uint64_t key = std::uint64_t{thread.pid} << 32 | thread.tid;
  const auto [at, added] = machine.threads.try_emplace(key);
  ThreadTrack& track = at->second;
  if (added) track.number = file_.new_track();
  if (added || track.name != thread.name) {
    track.name = thread.name;
    const Process& process = process_of(machine, thread);
    file_.describe_thread(
        track.number, process.track,
        {shown_number(machine.first_pid, thread.pid), shown_number(machine.first_pid, thread.tid)},
        track.name);
  }
  return track;
}

void PerfettoTrace::begin(const Firing& firing) {
  file_.start(firing.time);
  told_.machine = &firing.machine;
  told_.probe = &firing.probe;
  told_.time = firing.time;
  told_.notes.clear();
  told_.number.reset();
  told_.vcpu = firing.probe.has_thread ? &vcpu_of(firing.machine, firing.vcpu) : nullptr;
  told_.thread = nullptr;
  if (!firing.probe.has_thread || !firing.thread) return;
  told_.thread = &thread_of(firing, *told_.vcpu);
  told_.tid = firing.thread->tid;
}

void PerfettoTrace::end() {
  if (told_.vcpu != nullptr && told_.thread == nullptr) ++without_thread_;
  if (held_.is_firing_of(told_)) {
    held_.notes += told_.notes;
    return;
  }
  release();
  std::swap(held_, told_);
}

void PerfettoTrace::end_as_mark(std::string_view name) {
  ++events_;
  file_.write(
      {.track = track_of(*told_.machine), .time = told_.time, .text = name, .notes = told_.notes});
}

void PerfettoTrace::count(Machine& machine, std::string_view name, std::uint64_t time,
                          std::int64_t value) {
  file_.start(time);
  auto known = machine.counters.find(std::string(name));
  if (known == machine.counters.end()) {
    if (counters_ == kMostCounters) {
      ++values_left_out_;
      return;
    }
    ++counters_;
    known = machine.counters.emplace(name, file_.new_track()).first;
    file_.describe_counter(known->second, track_of(machine), shortened(name, kLongestCounterName));
  }
  ++events_;
  file_.write_count(known->second, time, value);
}

/// Writes the firing that is held, or lets it wait for its end.
void PerfettoTrace::release() {
  if (held_.machine == nullptr) return;
  ++events_;
  const Role role = held_.probe->role;
  if ((role == Role::Request && begin_request()) || (role == Role::RequestDone && end_request())) {
    held_.machine = nullptr;
    return;
  }
  if (held_.thread == nullptr) {
    if (held_.vcpu != nullptr) {
      write_instant(*held_.vcpu, held_.time, *held_.probe, held_.notes);
    } else {
      Track track{track_of(*held_.machine), 0};
      write_instant(track, held_.time, *held_.probe, held_.notes);
    }
  } else {
    switch (role) {
      case Role::Begin: begin_slice(*held_.thread); break;
      case Role::End: end_slice(*held_.thread); break;
      case Role::OnCpu: begin_to_run(*held_.vcpu); break;
      case Role::OffCpu: end_to_run(*held_.vcpu); break;
      case Role::Request:
      case Role::RequestDone:
      case Role::Instant:
        write_instant(*held_.thread, held_.time, *held_.probe, held_.notes);
        break;
    }
  }
  held_.machine = nullptr;
}

/// One that is too early has its own time all the same: it is in nobody's way.
void PerfettoTrace::write_instant(Track& track, std::uint64_t time, const Probe& probe,
                                  std::string_view notes) {
  file_.write({.track = track.number,
               .time = next_time(track.last, time).value_or(time),
               .category = probe.category,
               .name = probe.name,
               .notes = notes});
}

void PerfettoTrace::write_begin(const Track& track, const Open& open) {
  file_.write({.type = EventType::Begin,
               .track = track.number,
               .time = open.time,
               .category = open.probe->category,
               .name = open.probe->pair->name,
               .notes = open.notes});
}

void PerfettoTrace::write_end(const Track& track, std::uint64_t time, std::string_view notes) {
  file_.write({.type = EventType::End, .track = track.number, .time = time, .notes = notes});
}

void PerfettoTrace::write_as_instant(const Track& track, const Open& open) {
  file_.write({.track = track.number,
               .time = open.time,
               .category = open.probe->category,
               .name = open.probe->name,
               .notes = open.notes});
}

void PerfettoTrace::begin_slice(ThreadTrack& thread) {
  const auto time = next_time(thread.last, held_.time);
  if (!time) return write_instant(thread, held_.time, *held_.probe, held_.notes);
  if (held_.probe->pair->is_syscall) forget_syscalls(thread);
  if (thread.open.size() == kMostOpen) make_room(thread);
  thread.open.push_back({held_.probe, *time, held_.notes});
}

/// A thread is in one system call at a time, so the end of one that is open was not recorded.
void PerfettoTrace::forget_syscalls(ThreadTrack& thread) {
  const auto first = std::ranges::find_if(
      thread.open, [](const Open& open) { return open.probe->pair->is_syscall; });
  for (auto at = first; at != thread.open.end(); ++at) write_as_instant(thread, *at);
  thread.open.erase(first, thread.open.end());
}

void PerfettoTrace::make_room(ThreadTrack& thread) {
  const auto middle = thread.open.begin() + kMostOpen / 2;
  for (auto at = thread.open.begin(); at != middle; ++at) write_as_instant(thread, *at);
  thread.open.erase(thread.open.begin(), middle);
}

void PerfettoTrace::end_slice(ThreadTrack& thread) {
  const auto begun = std::ranges::find(thread.open.rbegin(), thread.open.rend(), held_.probe->pair,
                                       [](const Open& open) { return open.probe->pair; });
  const auto time = begun == thread.open.rend() ? std::nullopt : next_time(thread.last, held_.time);
  if (!time) return write_instant(thread, held_.time, *held_.probe, held_.notes);
  // The ends of those inside were not recorded.
  for (auto inner = begun.base(); inner != thread.open.end(); ++inner) {
    write_as_instant(thread, *inner);
  }
  write_begin(thread, *begun);
  write_end(thread, *time, held_.notes);
  held_.probe->pair->was_complete = true;
  thread.open.erase(std::prev(begun.base()), thread.open.end());
}

void PerfettoTrace::write_running(const Vcpu& vcpu) {
  const std::string text = fmt::format("{} {}", vcpu.thread->name, vcpu.tid);
  file_.write({.type = EventType::Begin,
               .track = vcpu.number,
               .time = vcpu.running->time,
               .category = vcpu.running->probe->category,
               .text = text,
               .notes = vcpu.running->notes});
}

/// Of what runs on a vCPU until then.
void PerfettoTrace::end_running(Vcpu& vcpu, std::uint64_t time, std::string_view notes) {
  write_running(vcpu);
  write_end(vcpu, time, notes);
  vcpu.running.reset();
}

/// The time that a vCPU is idle is a gap of its track.
void PerfettoTrace::begin_to_run(Vcpu& vcpu) {
  if (vcpu.running) {
    const auto time = next_time(vcpu.last, held_.time);
    if (time) end_running(vcpu, *time, {});
  }
  if (held_.tid == 0 && held_.notes.empty()) return;
  const auto time = next_time(vcpu.last, held_.time);
  if (!time || held_.tid == 0) return write_instant(vcpu, held_.time, *held_.probe, held_.notes);
  vcpu.running = {held_.probe, *time, held_.notes};
  vcpu.tid = held_.tid;
  vcpu.thread = held_.thread;
}

void PerfettoTrace::end_to_run(Vcpu& vcpu) {
  const bool runs = vcpu.running && vcpu.tid == held_.tid;
  const auto time = runs ? next_time(vcpu.last, held_.time) : std::nullopt;
  if (time) return end_running(vcpu, *time, held_.notes);
  if (held_.tid == 0 && held_.notes.empty()) return;
  write_instant(vcpu, held_.time, *held_.probe, held_.notes);
}

/// False: nothing tells which request it is, or there are too many. One whose end was not recorded
/// becomes an instant of the machine.
bool PerfettoTrace::begin_request() {
  Machine& machine = *held_.machine;
  if (!held_.number) return false;
  const auto known = machine.requests.find(*held_.number);
  if (known != machine.requests.end()) {
    write_as_instant({track_of(machine), 0}, known->second);
  } else if (machine.requests.size() == kMostRequests) {
    return false;
  }
  machine.requests[*held_.number] = {held_.probe, held_.time, held_.notes};
  return true;
}

/// One where nothing is under way when the request begins. Null: there are too many.
PerfettoTrace::Track* PerfettoTrace::request_track(Machine& machine, std::uint64_t begin) {
  const auto free = std::ranges::find_if(
      machine.request_tracks, [begin](const Track& track) { return track.last < begin; });
  if (free != machine.request_tracks.end()) return &*free;
  if (machine.request_tracks.size() == kMostRequestTracks) return nullptr;
  Track& track = machine.request_tracks.emplace_back(Track{file_.new_track(), 0});
  file_.describe_track(track.number, track_of(machine),
                       fmt::format("requests {}", machine.request_tracks.size()));
  return &track;
}

bool PerfettoTrace::end_request() {
  Machine& machine = *held_.machine;
  const auto begun = held_.number ? machine.requests.find(*held_.number) : machine.requests.end();
  if (begun == machine.requests.end()) return false;
  const Open open = std::move(begun->second);
  machine.requests.erase(begun);
  Track* const track = request_track(machine, open.time);
  if (track == nullptr) {
    write_as_instant({track_of(machine), 0}, open);
    return false;
  }
  track->last = std::max(held_.time, open.time + 1);
  write_begin(*track, open);
  write_end(*track, track->last, held_.notes);
  return true;
}

/// The beginnings of what had ends before begin slices without an end.
void PerfettoTrace::finish_thread(ThreadTrack& thread) {
  for (const Open& open : thread.open) {
    if (open.probe->pair->was_complete) {
      write_begin(thread, open);
    } else {
      write_as_instant(thread, open);
    }
  }
}

void PerfettoTrace::finish() {
  release();
  for (Machine& machine : machines_) {
    for (auto& [number, vcpu] : machine.vcpus) {
      if (vcpu.running) write_running(vcpu);
      finish_thread(vcpu.idle);
    }
    for (auto& [key, thread] : machine.threads) finish_thread(thread);
    for (const auto& [key, request] : machine.requests) {
      write_as_instant({track_of(machine), 0}, request);
    }
  }
}

}  // namespace ringside::cli
