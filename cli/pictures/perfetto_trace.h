// Firings over time for Perfetto's UI: a track for each vCPU and each thread with slices and
// instants, and counters. docs/pictures.md tells what becomes what. Used by the picture of a
// trace's records (perfetto_records.h).
//
// Slices. A firing at a beginning waits for its end on the same thread, and both are written then.
// So the file is not in the order of time; its readers sort it. Ends without a beginning and
// beginnings without an end become instants, so slices always nest: two on a thread are apart, or
// one is inside the other. Requests to devices begin and end on different threads, and overlap. So
// they have tracks of their own, and the first number that both firings record tells the request.
// No two events of a track that may have slices have the same time, because a sort by time would
// not know their order.
// Does not: know records or files, or how the file is encoded (perfetto_file.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "cli/pictures/perfetto_file.h"
#include "dif/program/probe_description.h"

namespace ringside::cli {

class PerfettoTrace {
 public:
  struct Probe;

 private:
  enum class Role : std::uint8_t { Instant, Begin, End, OnCpu, OffCpu, Request, RequestDone };
  /// A beginning and its end, as their probes have them.
  struct Pair {
    std::uint64_t name = 0;  // of its slices
    bool is_syscall = false;
    bool was_complete = false;  // there was a slice
  };
  struct Track {
    std::uint64_t number = 0;
    std::uint64_t last = 0;  // the time of the latest event
  };
  /// A beginning that waits.
  struct Open {
    const Probe* probe = nullptr;
    std::uint64_t time = 0;
    std::string notes;
  };
  struct ThreadTrack : Track {
    std::string name;
    std::vector<Open> open;  // the outermost first
  };
  struct Vcpu : Track {
    std::optional<Open> running;
    std::uint32_t tid = 0;                // of what runs
    const ThreadTrack* thread = nullptr;  // likewise; it may get another name meanwhile
    ThreadTrack idle;                     // its number is 0 until it is needed
  };
  struct Process {
    std::uint64_t track = 0;
    std::string name;
  };

 public:
  static constexpr std::size_t kMostCounters = 10'000;
  /// Beginnings of a thread that wait for their ends. Of more the older half become instants.
  static constexpr std::size_t kMostOpen = 256;
  /// Perfetto has one machine, where numbers of processes are unique. Those of the second machine
  /// are higher by this number, those of the third by twice as many.
  static constexpr std::uint32_t kPidsOfMachine = 10'000'000;
  static constexpr std::size_t kMostMachines = 200;
  /// Requests that wait for their ends. Of more, the beginnings are instants.
  static constexpr std::size_t kMostRequests = 4096;
  /// Tracks of requests that overlap.
  static constexpr std::size_t kMostRequestTracks = 64;

  struct Machine {
    std::string name;
    std::uint32_t first_pid = 0;  // what is added to its numbers of processes
    std::uint64_t track = 0;
    std::map<std::uint32_t, Vcpu> vcpus;
    std::unordered_map<std::uint64_t, ThreadTrack> threads;  // by pid and tid
    std::unordered_map<std::uint32_t, Process> processes;
    std::unordered_map<std::string, std::uint64_t> counters;  // tracks
    std::unordered_map<std::uint64_t, Open> requests;         // that are under way, by their keys
    std::deque<Track> request_tracks;
  };

  struct Probe {
    Role role = Role::Instant;
    bool has_thread = false;  // fires on one
    Pair* pair = nullptr;     // of beginnings and ends
    std::string_view prefix;  // of the names of what an end records
    std::uint64_t category = 0, name = 0;
  };

  /// The machine of this name, which may be empty; null if there are kMostMachines others. It stays
  /// as long as the trace.
  Machine* machine(std::string_view name);
  /// Likewise, but there may be any number.
  Probe& probe(const dif::ProbeDescription& name);

  struct Thread {
    std::uint32_t pid = 0, tid = 0;
    std::string_view name;
  };
  struct Firing {
    Machine& machine;
    Probe& probe;
    std::uint32_t vcpu = 0;
    std::uint64_t time = 0;        // ns of the host's CLOCK_MONOTONIC
    std::optional<Thread> thread;  // without it the firing is an instant
  };
  /// One firing: begin(), its values, end(). What several clauses record in one firing becomes one
  /// event.
  void begin(const Firing& firing);
  template <class Value>
  void note(std::string_view name, const Value& value) {
    if constexpr (std::is_integral_v<Value>) {
      if (!told_.number) told_.number = static_cast<std::uint64_t>(value);
    }
    PerfettoFile::append_note(told_.notes, note_name(name), value);
  }
  void end();
  /// Instead of end(): an instant of this name on the machine's own track.
  void end_as_mark(std::string_view name);

  /// A counter's value from `time` on.
  void count(Machine& machine, std::string_view name, std::uint64_t time, std::int64_t value);

  /// Writes what waits. Nothing may follow.
  void finish();
  /// Whether there is no event.
  bool is_empty() const { return events_ == 0; }
  /// Firings of threads that do not tell which.
  std::uint64_t without_thread() const { return without_thread_; }
  /// Values of counters that there was no room for.
  std::uint64_t values_left_out() const { return values_left_out_; }
  /// The piece of the file that was written since the last call.
  std::string take() { return file_.take(); }

 private:
  /// A firing that has been told. Another clause may add to it.
  struct Told {
    Machine* machine = nullptr;  // null: there is none
    Probe* probe = nullptr;
    Vcpu* vcpu = nullptr;
    ThreadTrack* thread = nullptr;  // null: it has none
    std::uint32_t tid = 0;
    std::uint64_t time = 0;
    std::string notes;                    // encoded
    std::optional<std::uint64_t> number;  // the first one that was noted

    bool is_firing_of(const Told& other) const {
      return machine == other.machine && probe == other.probe && vcpu == other.vcpu &&
             thread == other.thread && time == other.time;
    }
  };

  std::uint64_t note_name(std::string_view name);
  std::uint64_t track_of(Machine& machine);
  Vcpu& vcpu_of(Machine& machine, std::uint32_t number);
  ThreadTrack& thread_of(const Firing& firing, Vcpu& vcpu);
  Process& process_of(Machine& machine, const Thread& thread);

  void release();
  void write_instant(Track& track, std::uint64_t time, const Probe& probe, std::string_view notes);
  void write_begin(const Track& track, const Open& open);
  void write_end(const Track& track, std::uint64_t time, std::string_view notes);
  void write_as_instant(const Track& track, const Open& open);
  void begin_slice(ThreadTrack& thread);
  void end_slice(ThreadTrack& thread);
  void forget_syscalls(ThreadTrack& thread);
  void make_room(ThreadTrack& thread);
  void begin_to_run(Vcpu& vcpu);
  void end_to_run(Vcpu& vcpu);
  void write_running(const Vcpu& vcpu);
  void end_running(Vcpu& vcpu, std::uint64_t time, std::string_view notes);
  bool begin_request();
  bool end_request();
  Track* request_track(Machine& machine, std::uint64_t begin);
  void finish_thread(ThreadTrack& thread);

  PerfettoFile file_;
  std::deque<Machine> machines_;
  std::unordered_map<std::string, Probe> probes_;
  std::unordered_map<std::string, Pair> pairs_;
  std::unordered_map<std::string, std::uint64_t> note_names_;
  Told held_;  // waits for what other clauses add
  Told told_;  // between begin() and end()
  std::uint64_t events_ = 0, without_thread_ = 0, values_left_out_ = 0;
  std::size_t counters_ = 0;
};

}  // namespace ringside::cli
