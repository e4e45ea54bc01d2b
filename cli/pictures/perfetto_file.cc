#include "cli/pictures/perfetto_file.h"

#include <algorithm>
#include <optional>
#include <protozero/pbf_builder.hpp>

#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

using protozero::pbf_builder;
using protozero::pbf_tag_type;

// Numbers of fields. docs/perfetto.proto spells their names with small letters: timestamp_clock_id.
enum class TraceField : pbf_tag_type { Packet = 1 };
enum class PacketField : pbf_tag_type {
  ClockSnapshot = 6,
  Timestamp = 8,
  TrustedPacketSequenceId = 10,
  TrackEvent = 11,
  InternedData = 12,
  SequenceFlags = 13,
  TracePacketDefaults = 59,
  TrackDescriptor = 60,
  FirstPacketOnSequence = 87,
};
enum class DefaultsField : pbf_tag_type { TimestampClockId = 58 };
enum class SnapshotField : pbf_tag_type { Clocks = 1, PrimaryTraceClock = 2 };
enum class ClockField : pbf_tag_type { ClockId = 1, Timestamp = 2 };
enum class TrackField : pbf_tag_type {
  Uuid = 1,
  Name = 2,
  Process = 3,
  Thread = 4,
  ParentUuid = 5,
  Counter = 8,
};
enum class ProcessField : pbf_tag_type { Pid = 1, ProcessName = 6 };
enum class ThreadField : pbf_tag_type { Pid = 1, Tid = 2, ThreadName = 5 };
enum class CounterField : pbf_tag_type { Unit = 3 };
enum class EventField : pbf_tag_type {
  CategoryIids = 3,
  DebugAnnotations = 4,
  Type = 9,
  NameIid = 10,
  TrackUuid = 11,
  Name = 23,
  CounterValue = 30,
};
enum class InternedField : pbf_tag_type {};
enum class InternedNameField : pbf_tag_type { Iid = 1, Name = 2 };
enum class NoteField : pbf_tag_type {
  NameIid = 1,
  UintValue = 3,
  IntValue = 4,
  DoubleValue = 5,
  StringValue = 6,
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
  pbf_builder<NoteField> note(event, EventField::DebugAnnotations);
  note.add_uint64(NoteField::NameIid, name);
  add(note);
}

}  // namespace

template <class Fill>
void PerfettoFile::write_packet(Fill fill) {
  pbf_builder<TraceField> trace(out_);
  pbf_builder<PacketField> packet(trace, TraceField::Packet);
  packet.add_uint32(PacketField::TrustedPacketSequenceId, kSequence);
  if (!new_names_.empty()) {
    packet.add_message(PacketField::InternedData, new_names_);
    new_names_.clear();
  }
  fill(packet);
}

/// Times are CLOCK_MONOTONIC's. The clock of traces is BOOTTIME, and one moment of both tells how
/// to go from one to the other: it is the same number, as nothing here knows better.
void PerfettoFile::start(std::uint64_t time) {
  if (std::exchange(started_, true)) return;
  write_packet([&](auto& packet) {
    packet.add_uint32(PacketField::SequenceFlags, kStateCleared);
    packet.add_bool(PacketField::FirstPacketOnSequence, true);
    {
      pbf_builder<DefaultsField> defaults(packet, PacketField::TracePacketDefaults);
      defaults.add_uint32(DefaultsField::TimestampClockId, kMonotonic);
    }
    pbf_builder<SnapshotField> snapshot(packet, PacketField::ClockSnapshot);
    for (const std::uint32_t each : {kMonotonic, kBoottime}) {
      pbf_builder<ClockField> clock(snapshot, SnapshotField::Clocks);
      clock.add_uint32(ClockField::ClockId, each);
      clock.add_uint64(ClockField::Timestamp, time);
    }
    snapshot.add_uint32(SnapshotField::PrimaryTraceClock, kBoottime);
  });
}

std::uint64_t PerfettoFile::intern(NameKind kind, std::string_view text) {
  auto& names = names_[static_cast<std::size_t>(kind) - 1];
  const auto [at, added] = names.emplace(text, names.size() + 1);
  if (added) {
    pbf_builder<InternedField> interned(new_names_);
    pbf_builder<InternedNameField> name(interned, static_cast<InternedField>(kind));
    name.add_uint64(InternedNameField::Iid, at->second);
    add_text(name, InternedNameField::Name, text);
  }
  return at->second;
}

template <class Fill>
void PerfettoFile::write_description(std::uint64_t track, std::uint64_t parent, Fill fill) {
  write_packet([&](auto& packet) {
    pbf_builder<TrackField> description(packet, PacketField::TrackDescriptor);
    description.add_uint64(TrackField::Uuid, track);
    if (parent != 0) description.add_uint64(TrackField::ParentUuid, parent);
    fill(description);
  });
}

void PerfettoFile::describe_track(std::uint64_t track, std::uint64_t parent,
                                  std::string_view name) {
  write_description(track, parent,
                    [&](auto& description) { add_text(description, TrackField::Name, name); });
}

void PerfettoFile::describe_counter(std::uint64_t track, std::uint64_t parent,
                                    std::string_view name) {
  write_description(track, parent, [&](auto& description) {
    add_text(description, TrackField::Name, name);
    pbf_builder<CounterField> counter(description, TrackField::Counter);
    counter.add_enum(CounterField::Unit, kCount);
  });
}

void PerfettoFile::describe_process(std::uint64_t track, std::int32_t pid, std::string_view name) {
  write_description(track, 0, [&](auto& description) {
    pbf_builder<ProcessField> process(description, TrackField::Process);
    process.add_int32(ProcessField::Pid, pid);
    add_text(process, ProcessField::ProcessName, name);
  });
}

void PerfettoFile::describe_thread(std::uint64_t track, std::uint64_t parent,
                                   std::pair<std::int32_t, std::int32_t> pid_and_tid,
                                   std::string_view name) {
  write_description(track, parent, [&](auto& description) {
    pbf_builder<ThreadField> thread(description, TrackField::Thread);
    thread.add_int32(ThreadField::Pid, pid_and_tid.first);
    thread.add_int32(ThreadField::Tid, pid_and_tid.second);
    add_text(thread, ThreadField::ThreadName, name);
  });
}

void PerfettoFile::append_note(std::string& notes, std::uint64_t name, std::int64_t value) {
  append_annotation(notes, name, [&](auto& note) { note.add_int64(NoteField::IntValue, value); });
}

void PerfettoFile::append_note(std::string& notes, std::uint64_t name, std::uint64_t value) {
  append_annotation(notes, name, [&](auto& note) { note.add_uint64(NoteField::UintValue, value); });
}

void PerfettoFile::append_note(std::string& notes, std::uint64_t name, double value) {
  append_annotation(notes, name,
                    [&](auto& note) { note.add_double(NoteField::DoubleValue, value); });
}

void PerfettoFile::append_note(std::string& notes, std::uint64_t name, std::string_view value) {
  append_annotation(notes, name,
                    [&](auto& note) { add_text(note, NoteField::StringValue, value); });
}

template <class Fill>
void PerfettoFile::write_event(std::uint64_t time, Fill fill) {
  write_packet([&](auto& packet) {
    packet.add_uint64(PacketField::Timestamp, time);
    packet.add_uint32(PacketField::SequenceFlags, kNeedsState);
    pbf_builder<EventField> event(packet, PacketField::TrackEvent);
    fill(event);
  });
}

void PerfettoFile::write(const Event& event) {
  write_event(event.time, [&](auto& fields) {
    fields.add_enum(EventField::Type, static_cast<std::int32_t>(event.type));
    fields.add_uint64(EventField::TrackUuid, event.track);
    if (event.category != 0) fields.add_uint64(EventField::CategoryIids, event.category);
    if (event.name != 0) fields.add_uint64(EventField::NameIid, event.name);
    if (!event.text.empty()) add_text(fields, EventField::Name, event.text);
    out_ += event.notes;  // fields of the same message
  });
}

void PerfettoFile::write_count(std::uint64_t track, std::uint64_t time, std::int64_t value) {
  write_event(time, [&](auto& fields) {
    fields.add_enum(EventField::Type, static_cast<std::int32_t>(EventType::Counter));
    fields.add_uint64(EventField::TrackUuid, track);
    fields.add_int64(EventField::CounterValue, value);
  });
}

}  // namespace ringside::cli
