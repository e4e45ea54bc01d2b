// The encoding of Perfetto's trace files: packets with descriptions of tracks, events on them, and
// names that events refer to by number (docs/perfetto.proto). Used by perfetto_trace.h.
// Text may have any bytes: what is not UTF-8, and control characters but newlines and tabs, become
// U+FFFD.
// Does not: order events or see that slices nest.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ringside::cli {

class PerfettoFile {
 public:
  /// The field of InternedData that has the names.
  enum class NameKind : std::uint8_t { Category = 1, Event = 2, Note = 3 };
  enum class EventType : std::uint8_t { Begin = 1, End = 2, Instant = 3, Counter = 4 };
  struct Event {
    EventType type = EventType::Instant;
    std::uint64_t track = 0;
    std::uint64_t time = 0;                // ns of the host's CLOCK_MONOTONIC
    std::uint64_t category = 0, name = 0;  // interned; 0: none
    std::string_view text = {};            // a name that is not interned
    std::string_view notes = {};           // of append_note()
  };

  /// Writes the beginning of the file, at the first call. Before anything else.
  void start(std::uint64_t time);

  /// The number of a name. It stays the same; the text is written with the next packet.
  std::uint64_t intern(NameKind kind, std::string_view text);

  /// A track's number; 0 is none. It may be described once more, with another name.
  std::uint64_t new_track() { return ++tracks_; }
  void describe_track(std::uint64_t track, std::uint64_t parent, std::string_view name);
  void describe_counter(std::uint64_t track, std::uint64_t parent, std::string_view name);
  void describe_process(std::uint64_t track, std::int32_t pid, std::string_view name);
  void describe_thread(std::uint64_t track, std::uint64_t parent,
                       std::pair<std::int32_t, std::int32_t> pid_and_tid, std::string_view name);

  /// Adds a value to the notes of an event. `name` is interned.
  static void append_note(std::string& notes, std::uint64_t name, std::int64_t value);
  static void append_note(std::string& notes, std::uint64_t name, std::uint64_t value);
  static void append_note(std::string& notes, std::uint64_t name, double value);
  static void append_note(std::string& notes, std::uint64_t name, std::string_view value);

  void write(const Event& event);
  void write_count(std::uint64_t track, std::uint64_t time, std::int64_t value);

  /// The piece that was written since the last call.
  std::string take() {
    std::string piece = out_;
    out_.clear();  // its room stays
    return piece;
  }

 private:
  template <class Fill>
  void write_packet(Fill fill);
  template <class Fill>
  void write_description(std::uint64_t track, std::uint64_t parent, Fill fill);
  template <class Fill>
  void write_event(std::uint64_t time, Fill fill);

  bool started_ = false;
  std::uint64_t tracks_ = 0;
  std::array<std::unordered_map<std::string, std::uint64_t>, 3> names_;
  std::string new_names_;  // InternedData for the next packet
  std::string out_;
};

}  // namespace ringside::cli
