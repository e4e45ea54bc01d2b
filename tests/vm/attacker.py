"""A hostile guest's attacks on its own memory, done from outside while ringside looks: scribbling
over the guest's RAM, which the test maps as QEMU's file.

Used by test_hostile_guest.py. The guest itself says what is where, before it turns hostile.
"""

import hashlib
import mmap
import os
import pathlib
import random
import re
import struct
import threading

PAGE = 4096
PRESENT, LARGE = 1, 1 << 7
ADDRESS = 0x000f_ffff_ffff_f000
ABI = (pathlib.Path(__file__).parents[2] / "guest-shim/mailbox_abi.h").read_text()


def abi(name):
    """A number that the header defines."""
    return int(re.search(rf"^#define {name} (?:SHIM_U\()?(\w+)", ABI, re.M)[1], 0)


MAGIC, VERSION = abi("SHIM_MAGIC"), abi("SHIM_VERSION")
HEADER = struct.Struct("<4I4Q2I3Q")  # struct shim_header there, as far as it is used
HEADS, BOXES, DATA_SIZE = abi("SHIM_HEADS"), abi("SHIM_BOXES"), abi("SHIM_DATA_SIZE")
HEAD_SIZE, BOX_SIZE, MAILBOXES = abi("SHIM_HEAD_SIZE"), abi("SHIM_BOX_SIZE"), abi("SHIM_MAILBOXES")
CLAIM, RAISED = abi("SHIM_CLAIM"), abi("SHIM_RAISED")
CONTROL_LEFT = abi("SHIM_CONTROL_LEFT")
RINGS, RING_CONTROLS = abi("SHIM_HEADER_RINGS"), abi("SHIM_HEADER_RING_CONTROLS")
TABLE_SIZE = 2 * abi("SHIM_TABLE_WORDS")
RING_SIZE, RING_NESTED = abi("SHIM_RING_SIZE"), abi("SHIM_RING_NESTED")
RING_HEAD, RING_TAIL = abi("SHIM_RING_HEAD"), abi("SHIM_RING_TAIL")
SYMBOLS = ("_text", "_etext", "init_top_pgt", "modules", "kallsyms_num_syms", "kallsyms_names",
           "kallsyms_token_table", "kallsyms_token_index", "__start_BTF", "__stop_BTF", "init_task",
           "null_fops", "_sdata", "_edata", "stop_this_cpu", "read_null", "idt_table")


class Memory:
    """The RAM of a guest whose QEMU shares it, with addresses as the guest's kernel has them."""

    def __init__(self, pid, port):
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            if "memfd:memory-backend" in os.readlink(link):
                with open(link, "r+b", buffering=0) as file:
                    self.ram = mmap.mmap(file.fileno(), os.fstat(file.fileno()).st_size)
        names = "|".join(SYMBOLS)
        said = port.run(f"grep -E ' ({names})$' /proc/kallsyms;"
                        " grep 'Kernel code' /proc/iomem; grep -o -m1 la57 /proc/cpuinfo")[1]
        self.symbols = {name: int(at, 16) for at, name in
                        re.findall(r"^([0-9a-f]+) \w (\w+)$", said.decode(), re.M)}
        self.base, self.size = self.symbols["_text"], 1 << 25
        # The first bit of what each level's entries lead to.
        self._levels = (48, 39, 30, 21, 12) if b"la57" in said else (39, 30, 21, 12)
        self.code = int(re.search(r"([0-9a-f]+)-[0-9a-f]+ : Kernel code", said.decode())[1], 16)

    def close(self):
        """Forgets the memory."""
        self.ram.close()

    def load(self, at):
        """The word at a physical address."""
        return struct.unpack_from("<Q", self.ram, at)[0]

    def store(self, at, value):
        """Writes a word; an address outside is nobody's."""
        if at + 8 <= len(self.ram):
            struct.pack_into("<Q", self.ram, at, value & (1 << 64) - 1)

    def image(self, name):
        """The physical address of one of the kernel image's symbols."""
        return self.symbols[name] - self.symbols["_text"] + self.code

    def tables(self):
        """The physical addresses of all page tables of the kernel, the root first."""
        found, level = [self.image("init_top_pgt")], [self.image("init_top_pgt")]
        for _ in self._levels[1:]:
            below = []
            for table in level:
                for entry in struct.unpack_from("<512Q", self.ram, table):
                    to = entry & ADDRESS
                    if entry & PRESENT and not entry & LARGE and to + PAGE <= len(self.ram):
                        below.append(to)
            level = list(dict.fromkeys(below))
            found += level
        return found

    def entry(self, address):
        """Where the page-table entry of one of the kernel's 4 KiB pages is."""
        table = self.image("init_top_pgt")
        for shift in self._levels[:-1]:
            table = self.load(table + (address >> shift & 511) * 8) & ADDRESS
        return table + (address >> 12 & 511) * 8

    def translate(self, address):
        """The physical address of a kernel's; None where nothing is mapped."""
        table = self.image("init_top_pgt")
        for shift in self._levels:
            entry = self.load(table + (address >> shift & 511) * 8)
            if not entry & PRESENT:
                return None
            table = entry & ADDRESS
            if shift == 12 or entry & LARGE and shift < 39:
                size = (1 << shift) - 1
                return table & ~size | address & size
        return None


class Stub:
    """The stub that a ringside has put into a guest, and where its parts lie in RAM."""

    def __init__(self, memory):
        mark = struct.pack("<II", MAGIC, VERSION)
        for page in range(0, len(memory.ram), PAGE):
            if memory.ram[page:page + 8] != mark:
                continue
            *_, data, slots, _, _, self.base, self.size, slots_size = HEADER.unpack_from(memory.ram, page)
            if memory.translate(self.base) == page:
                self.at = page
                self.data = page + data - self.base
                self.slots = (page + slots - self.base, slots_size)
                count = memory.load(page + RINGS) & 0xffffffff
                controls = page + memory.load(page + RING_CONTROLS) - self.base
                self.rings = [controls + at for at in range(0, count * RING_SIZE, RING_NESTED)]
                records = controls + count * RING_SIZE
                self.records = (records, self.at + self.size - records)
                return
        raise LookupError("no stub in the guest's memory")


class Scribbler:
    """A thread that writes garbage, by one of the methods below, until it is stopped.

    `stub`: None where there is none. `pause`: seconds after each 64 writes.
    """

    def __init__(self, memory, stub, what, seed, pause=0.0):
        self._memory = memory
        self._stub = stub
        self._random = random.Random(seed)
        self._pause = pause
        self._over = threading.Event()
        self._tables = memory.tables()
        self._thread = threading.Thread(target=self._write, args=(getattr(self, what),))
        self.written = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *unused):
        self._over.set()
        self._thread.join()

    def _write(self, step):
        while not self._over.is_set():
            for _ in range(64):
                step()
                self.written += 1
            self._over.wait(self._pause)

    def value(self):
        """A word that somebody may believe."""
        memory, pick = self._memory, self._random
        place = self._stub or memory
        return pick.choice((
            lambda: 0, lambda: (1 << 64) - 1, lambda: 1 << pick.randrange(64),
            lambda: pick.getrandbits(64), lambda: pick.getrandbits(16),
            lambda: memory.base + pick.randrange(memory.size),
            lambda: place.base + pick.randrange(place.size),
            lambda: memory.load(pick.randrange(len(memory.ram) // 8) * 8),
            lambda: len(memory.ram) + pick.randrange(-PAGE, PAGE),
            lambda: pick.choice(self._tables) | pick.getrandbits(12)))()

    def _some(self, start, size):
        self._memory.store(start + self._random.randrange(size // 8) * 8, self.value())

    def mailboxes(self):
        """Heads that are raised with any claim, boxes, and times that jump."""
        pick, at = self._random, self._stub.data
        head = at + HEADS + pick.randrange(MAILBOXES) * HEAD_SIZE
        way = pick.randrange(4)
        if way == 0:
            self._some(at + HEADS, DATA_SIZE - HEADS)
        elif way == 1:
            self._memory.store(head + pick.randrange(1, 8) * 8, self.value())
        else:
            self._memory.store(head, pick.getrandbits(40) * CLAIM | RAISED)

    def control(self):
        """The page of the host's words, but for the one that says that the kernel has gone."""
        at = self._random.randrange(32) * 8
        if at != CONTROL_LEFT:
            self._memory.store(self._stub.data + at, self.value())

    def rings(self):
        """Records, and counts of them that jump ahead and back; now and then the words of the host, too."""
        pick, memory = self._random, self._memory
        ring = pick.choice(self._stub.rings)
        way = pick.randrange(64)
        if way == 0:
            self._some(ring, RING_NESTED)
        elif way < 8:
            memory.store(ring + RING_HEAD, memory.load(ring + RING_TAIL) + pick.randrange(-64, 1024))
        else:
            self._some(*self._stub.records)

    def stub(self):
        """All that a stub consists of."""
        self._random.choice((
            self.mailboxes, self.control, self.rings, lambda: self._some(self._stub.slots[0], TABLE_SIZE),
            lambda: self._some(*self._stub.slots), lambda: self._some(self._stub.at, PAGE)))()

    def page_tables(self):
        """Entries that lead to other tables, to themselves, to nowhere, and outside of RAM."""
        self._some(self._random.choice(self._tables), PAGE)

    def kernel_data(self):
        """The kernel's own variables: module list, tasks, what is each CPU's, the gates' table."""
        start = self._memory.image("_sdata")
        self._some(start, self._memory.image("_edata") - start)

    def names_and_types(self):
        """Symbol tables, types, and the list of modules, which the guest itself seldom reads."""
        symbols, pick = self._memory.symbols, self._random
        if pick.randrange(64) == 0:
            return self._memory.store(self._memory.image("modules") + pick.randrange(2) * 8,
                                      self.value())
        first, last = pick.choice((("kallsyms_num_syms", "kallsyms_token_table"),
                                   ("__start_BTF", "__stop_BTF")))
        start, end = sorted((symbols[first], symbols[last]))
        at = self._memory.image("_text") - symbols["_text"] + start
        return self._some(at, max(end - start, 8))

    def everything(self):
        """Any word of RAM."""
        self._some(0, len(self._memory.ram))


class Hijack:
    """The kernel's function that reads /dev/null, which the guest lets be another one."""

    def __init__(self, memory):
        start = memory.image("null_fops")
        self._memory = memory
        self._read = memory.symbols["read_null"]
        self._at = next(at for at in range(start, start + 64, 8) if memory.load(at) == self._read)

    def forward_to(self, address):
        """Who reads /dev/null next calls what is there."""
        self._memory.store(self._at, address)


def fingerprints(memory):
    """A hash of each page."""
    return [hashlib.blake2b(memory.ram[at:at + PAGE]).digest()
            for at in range(0, len(memory.ram), PAGE)]
