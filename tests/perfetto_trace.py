"""Reads what `-O perfetto` wrote, by protoc and docs/perfetto.proto, and checks it by the rules that Perfetto's
trace processor has: names and tracks are known before events refer to them, slices nest on each track by a
stable sort by time, one sequence whose state begins cleared, one process for each pid."""

import collections
import dataclasses
import pathlib
import re
import subprocess

SCHEMA = pathlib.Path(__file__).resolve().parents[1] / "docs" / "perfetto.proto"
STATE_CLEARED, NEEDS_STATE = 1, 2
BEGIN, END, INSTANT, COUNTER = "TYPE_SLICE_BEGIN", "TYPE_SLICE_END", "TYPE_INSTANT", "TYPE_COUNTER"
KINDS = {"category": "event_categories", "name": "event_names", "note": "debug_annotation_names"}
ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class Broken(Exception):
    """A rule of trace processor's does not hold."""


def expect(holds, what):
    if not holds:
        raise Broken(what)


def unescaped(text):
    """The text of protoc's literal, which has bytes as \\ooo. Fails if it is not UTF-8."""
    def byte(match):
        escape = match[1]
        return bytes([int(escape, 8)]) if escape[:1].isdigit() else ESCAPES.get(escape, escape)
    return re.sub(rb"\\([0-7]{3}|.)", byte, text.encode()).decode()


def scalar(text):
    if text.startswith('"'):
        return unescaped(text[1:-1])
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def parsed(lines):
    """A message of protoc's text form: lists by field."""
    message = collections.defaultdict(list)
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        if line.endswith(" {"):
            message[line[:-2]].append(parsed(lines))
        else:
            field, _, value = line.partition(": ")
            message[field].append(scalar(value))
    return message


def protoc(data, *options):
    return subprocess.run(["protoc", *options], input=data, capture_output=True, check=True, timeout=600)


def packets_of(data):
    done = protoc(data, "--decode=perfetto.protos.Trace", f"--proto_path={SCHEMA.parent}", SCHEMA.name)
    packets = parsed(iter(done.stdout.decode().splitlines()))["packet"]
    raw = protoc(data, "--decode_raw").stdout.decode().splitlines()
    expect(sum(line == "1 {" for line in raw) == len(packets), "there is something beside packets")
    unknown = [line for line in done.stdout.decode().splitlines() if re.match(r" *\d+[:{ ]", line)]
    expect(not unknown, f"fields that docs/perfetto.proto does not have: {unknown[:3]}")
    return packets


def only(message, field, default=None):
    values = message.get(field, [])
    expect(len(values) <= 1, f"{field} comes twice")
    return values[0] if values else default


@dataclasses.dataclass
class Track:
    uuid: int
    parent: int = 0
    name: str = ""
    kind: str = "plain"
    pid: int = 0
    tid: int = 0


@dataclasses.dataclass
class Event:
    """`end` is None of an instant, and of a slice that has no end."""
    track: Track
    kind: str
    name: str
    category: str
    time: int
    notes: dict
    end: int = None
    depth: int = 0
    value: int = 0


class Trace:
    def __init__(self, data):
        self.tracks = {}
        self.names = {kind: {} for kind in KINDS}
        self.events = []
        packets = packets_of(data)
        self.check_first(packets[0])
        for number, packet in enumerate(packets):
            expect(only(packet, "trusted_packet_sequence_id") == 1, "a packet of another sequence")
            self.take_names(packet)
            if "track_descriptor" in packet:
                self.take_track(only(packet, "track_descriptor"))
            elif "track_event" in packet:
                self.take_event(packet)
            else:
                expect(number == 0, "a packet without data")
        self.check_tracks()
        self.slices, self.open = self.nested()
        self.instants = [event for event in self.events if event.kind == INSTANT]

    def check_first(self, packet):
        expect(only(packet, "sequence_flags") == STATE_CLEARED, "the state is not cleared first")
        expect(only(packet, "first_packet_on_sequence") == "true", "the first packet is not marked")
        clock = only(only(packet, "trace_packet_defaults"), "timestamp_clock_id")
        snapshot = only(packet, "clock_snapshot")
        clocks = {only(each, "clock_id"): only(each, "timestamp") for each in snapshot["clocks"]}
        expect(clock in clocks and 6 in clocks, "the clock of timestamps has no snapshot")

    def take_names(self, packet):
        interned = only(packet, "interned_data", {})
        for kind, field in KINDS.items():
            for entry in interned.get(field, []):
                number = only(entry, "iid")
                expect(number and number not in self.names[kind], f"{field} {number} comes twice")
                self.names[kind][number] = only(entry, "name")

    def take_track(self, description):
        uuid = only(description, "uuid")
        expect(uuid, "a track without a number")
        track = self.tracks.setdefault(uuid, Track(uuid))
        track.parent = only(description, "parent_uuid", 0)
        expect(track.parent == 0 or track.parent in self.tracks, "a parent that is not described")
        track.name = only(description, "name", "")
        process, thread = only(description, "process"), only(description, "thread")
        if process is not None:
            track.kind, track.pid, track.name = "process", only(process, "pid"), only(process, "process_name")
        elif thread is not None:
            track.kind, track.pid, track.tid = "thread", only(thread, "pid"), only(thread, "tid")
            track.name = only(thread, "thread_name", "")
        elif "counter" in description:
            track.kind = "counter"

    def take_event(self, packet):
        event = only(packet, "track_event")
        expect(only(packet, "sequence_flags") == NEEDS_STATE, "an event that needs no state")
        expect(only(event, "track_uuid") in self.tracks, "an event on an unknown track")
        notes = {}
        for note in event.get("debug_annotations", []):
            name = self.names["note"][only(note, "name_iid")]
            value = next(only(note, field) for field in note if field.endswith("_value"))
            notes[name] = value
        name = self.names["name"][only(event, "name_iid")] if "name_iid" in event else only(event, "name", "")
        categories = [self.names["category"][number] for number in event.get("category_iids", [])]
        self.events.append(Event(self.tracks[only(event, "track_uuid")], only(event, "type"), name,
                                 ",".join(categories), only(packet, "timestamp"), notes,
                                 value=only(event, "counter_value", 0)))

    def check_tracks(self):
        """Trace processor takes a second track of a pid or tid for another process or thread."""
        of_process = [track.pid for track in self.tracks.values() if track.kind == "process"]
        of_thread = [track.tid for track in self.tracks.values() if track.kind == "thread"]
        for numbers in (of_process, of_thread):
            expect(len(set(numbers)) == len(numbers), "two tracks of one process or thread")
        for track in self.tracks.values():
            if track.kind == "thread":
                expect(self.tracks[track.parent].pid == track.pid, "a thread below another process")
        for event in self.events:
            expect((event.kind == COUNTER) == (event.track.kind == "counter"), "a counter among slices")

    def nested(self):
        """The slices with an end, and those without one. Sorted by time, all nest."""
        slices, last = [], {}
        stacks = collections.defaultdict(list)
        for event in sorted(self.events, key=lambda event: event.time):
            if event.kind not in (BEGIN, END):
                continue
            stack, uuid = stacks[event.track.uuid], event.track.uuid
            expect(last.get(uuid, -1) < event.time, "two ends of slices at one time")
            last[uuid] = event.time
            if event.kind == BEGIN:
                event.depth = len(stack)
                stack.append(event)
            else:
                expect(stack, "an end without a beginning")
                begun = stack.pop()
                begun.end = event.time
                begun.notes.update(event.notes)
                slices.append(begun)
        return slices, [event for stack in stacks.values() for event in stack]

    def counters(self):
        """By name, the values of counters in the order of time."""
        values = collections.defaultdict(list)
        for event in sorted(self.events, key=lambda event: event.time):
            if event.kind == COUNTER:
                values[event.track.name].append(event.value)
        return dict(values)

    def named(self, kind):
        return sorted(track.name for track in self.tracks.values() if track.kind == kind)
