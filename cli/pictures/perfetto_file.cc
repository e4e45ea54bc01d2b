#include "cli/pictures/perfetto_file.h"

#include <algorithm>
#include <optional>
#include <protozero/pbf_builder.hpp>

#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

using protozero::pbf_builder;
using protozero::pbf_tag_type;

// Numbers of fields, by the names that docs/perfetto.proto has for them.
enum class TraceField : pbf_tag_type { packet = 1 };
enum class PacketField : pbf_tag_type {
  clock_snapshot = 6,
  timestamp = 8,
  trusted_packet_sequence_id = 10,
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  trace_packet_defaults = 59,
  track_descriptor = 60,
  first_packet_on_sequence = 87,
};
enum class DefaultsField : pbf_tag_type { timestamp_clock_id = 58 };
enum class SnapshotField : pbf_tag_type { clocks = 1, primary_trace_clock = 2 };
enum class ClockField : pbf_tag_type { clock_id = 1, timestamp = 2 };
enum class TrackField : pbf_tag_type {
  uuid = 1,
  name = 2,
  process = 3,
  thread = 4,
  parent_uuid = 5,
  counter = 8,
};
enum class ProcessField : pbf_tag_type { pid = 1, process_name = 6 };
enum class ThreadField : pbf_tag_type { pid = 1, tid = 2, thread_name = 5 };
enum class CounterField : pbf_tag_type { unit = 3 };
enum class EventField : pbf_tag_type {
  category_iids = 3,
  debug_annotations = 4,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  name = 23,
  counter_value = 30,
};
enum class InternedField : pbf_tag_type {};
enum class InternedNameField : pbf_tag_type { iid = 1, name = 2 };
enum class NoteField : pbf_tag_type {
  name_iid = 1,
  uint_value = 3,
  int_value = 4,
  double_value = 5,
  string_value = 6,
};

constexpr std::uint32_t kSequence = 1;  // all packets are of one
constexpr std::uint32_t kStateCleared = 1, kNeedsState = 2;
constexpr std::uint32_t kMonotonic = 3, kBoottime = 6;  // clocks
constexpr std::int32_t kCount = 2;                      // a counter's unit
constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

bool is_clean(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\t'; });
}

/// Text that any reader takes. `room` holds it where it is not the given one.
std::string_view clean(std::string_view text, std::string& room) {
  if (is_clean(text)) return text;
  room.clear();
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const bool layout = character == "\n" || character == "\t";
    room += length == 0 || (is_control(character) && !layout) ? kReplacementCharacter : character;
    text.remove_prefix(character.size());
  }
  return room;
}

template <class Builder, class Field>
void add_text(Builder& builder, Field field, std::string_view text) {
  std::string room;
  const std::string_view safe = clean(text, room);
  builder.add_string(field, safe.data(), safe.size());
}

template <class Add>
void append_annotation(std::string& notes, std::uint64_t name, Add add) {
  pbf_builder<EventField> event(notes);
  pbf_builder<NoteField> note(event, EventField::debug_annotations);
  note.add_uint64(NoteField::name_iid, name);
  add(note);
}

}  // namespace

template <class Fill>
void PerfettoFile::write_packet(Fill fill) {
  pbf_builder<TraceField> trace(out_);
  pbf_builder<PacketField> packet(trace, TraceField::packet);
  packet.add_uint32(PacketField::trusted_packet_sequence_id, kSequence);
  if (!new_names_.empty()) {
    packet.add_message(PacketField::interned_data, new_names_);
    new_names_.clear();
  }
  fill(packet);
}

/// Times are CLOCK_MONOTONIC's. The clock of traces is BOOTTIME, and one moment of both tells how
/// to go from one to the other: it is the same number, as nothing here knows better.
void PerfettoFile::start(std::uint64_t time) {
  if (std::exchange(started_, true)) return;
  write_packet([&](auto& packet) {
    packet.add_uint32(PacketField::sequence_flags, kStateCleared);
    packet.add_bool(PacketField::first_packet_on_sequence, true);
    {
      pbf_builder<DefaultsField> defaults(packet, PacketField::trace_packet_defaults);
      defaults.add_uint32(DefaultsField::timestamp_clock_id, kMonotonic);
    }
    pbf_builder<SnapshotField> snapshot(packet, PacketField::clock_snapshot);
    for (const std::uint32_t each : {kMonotonic, kBoottime}) {
      pbf_builder<ClockField> clock(snapshot, SnapshotField::clocks);
      clock.add_uint32(ClockField::clock_id, each);
      clock.add_uint64(ClockField::timestamp, time);
    }
    snapshot.add_uint32(SnapshotField::primary_trace_clock, kBoottime);
  });
}

std::uint64_t PerfettoFile::intern(NameKind kind, std::string_view text) {
  auto& names = names_[static_cast<std::size_t>(kind) - 1];
  const auto [at, added] = names.emplace(text, names.size() + 1);
  if (added) {
    pbf_builder<InternedField> interned(new_names_);
    pbf_builder<InternedNameField> name(interned, static_cast<InternedField>(kind));
    name.add_uint64(InternedNameField::iid, at->second);
    add_text(name, InternedNameField::name, text);
  }
  return at->second;
}

template <class Fill>
void PerfettoFile::write_description(std::uint64_t track, std::uint64_t parent, Fill fill) {
  write_packet([&](auto& packet) {
    pbf_builder<TrackField> description(packet, PacketField::track_descriptor);
    description.add_uint64(TrackField::uuid, track);
    if (parent != 0) description.add_uint64(TrackField::parent_uuid, parent);
    fill(description);
  });
}

void PerfettoFile::describe_track(std::uint64_t track, std::uint64_t parent,
                                  std::string_view name) {
  write_description(track, parent,
                    [&](auto& description) { add_text(description, TrackField::name, name); });
}

void PerfettoFile::describe_counter(std::uint64_t track, std::uint64_t parent,
                                    std::string_view name) {
  write_description(track, parent, [&](auto& description) {
    add_text(description, TrackField::name, name);
    pbf_builder<CounterField> counter(description, TrackField::counter);
    counter.add_enum(CounterField::unit, kCount);
  });
}

void PerfettoFile::describe_process(std::uint64_t track, std::int32_t pid, std::string_view name) {
  write_description(track, 0, [&](auto& description) {
    pbf_builder<ProcessField> process(description, TrackField::process);
    process.add_int32(ProcessField::pid, pid);
    add_text(process, ProcessField::process_name, name);
  });
}

void PerfettoFile::describe_thread(std::uint64_t track, std::uint64_t parent,
                                   std::pair<std::int32_t, std::int32_t> pid_and_tid,
                                   std::string_view name) {
  write_description(track, parent, [&](auto& description) {
    pbf_builder<ThreadField> thread(description, TrackField::thread);
    thread.add_int32(ThreadField::pid, pid_and_tid.first);
    thread.add_int32(ThreadField::tid, pid_and_tid.second);
    add_text(thread, ThreadField::thread_name, name);
  });
}

void PerfettoFile::append_note(std::string& notes, std::uint64_t name, std::int64_t value) {
  append_annotation(notes, name, [&](auto& note) { note.add_int64(NoteField::int_value, value); });
}

void PerfettoFile::append_note(std::string& notes, std::uint64_t name, std::uint64_t value) {
  append_annotation(notes, name,
                    [&](auto& note) { note.add_uint64(NoteField::uint_value, value); });
}

void PerfettoFile::append_note(std::string& notes, std::uint64_t name, double value) {
  append_annotation(notes, name,
                    [&](auto& note) { note.add_double(NoteField::double_value, value); });
}

void PerfettoFile::append_note(std::string& notes, std::uint64_t name, std::string_view value) {
  append_annotation(notes, name,
                    [&](auto& note) { add_text(note, NoteField::string_value, value); });
}

template <class Fill>
void PerfettoFile::write_event(std::uint64_t time, Fill fill) {
  write_packet([&](auto& packet) {
    packet.add_uint64(PacketField::timestamp, time);
    packet.add_uint32(PacketField::sequence_flags, kNeedsState);
    pbf_builder<EventField> event(packet, PacketField::track_event);
    fill(event);
  });
}

void PerfettoFile::write(const Event& event) {
  write_event(event.time, [&](auto& fields) {
    fields.add_enum(EventField::type, static_cast<std::int32_t>(event.type));
    fields.add_uint64(EventField::track_uuid, event.track);
    if (event.category != 0) fields.add_uint64(EventField::category_iids, event.category);
    if (event.name != 0) fields.add_uint64(EventField::name_iid, event.name);
    if (!event.text.empty()) add_text(fields, EventField::name, event.text);
    out_ += event.notes;  // fields of the same message
  });
}

void PerfettoFile::write_count(std::uint64_t track, std::uint64_t time, std::int64_t value) {
  write_event(time, [&](auto& fields) {
    fields.add_enum(EventField::type, static_cast<std::int32_t>(EventType::Counter));
    fields.add_uint64(EventField::track_uuid, track);
    fields.add_int64(EventField::counter_value, value);
  });
}

}  // namespace ringside::cli
