"""The parts of a guest's memory that a trace has to leave as they were, read by its owner's monitor."""

PAGE = 4096
FIRST_640_KIB = "first 640 KiB"


class Places:
    """Triples of a name, the first byte and the end, all physical. The kernel is one block of memory."""

    BLOCKS = (("text", "_stext", "_etext"), ("constants", "__start_rodata", "__end_rodata"))
    PAGES = ("idt_table", "init_top_pgt", "level3_kernel_pgt", "level2_kernel_pgt", "level2_fixmap_pgt")
    # With page-table isolation, the half that user mode runs in (arch/x86/include/asm/pgtable.h).
    USER_HALF = "init_top_pgt"

    def __init__(self, port, monitor, folder):
        """`port` is the guest's command port; files are made in `folder`."""
        self._monitor, self._folder = monitor, folder
        names = {"_text", *self.PAGES, *(name for block in self.BLOCKS for name in block[1:])}
        listed = port.run(f"grep -E ' ({'|'.join(names)})$' /proc/kallsyms")[1].decode()
        self._at = {name: int(address, 16) for address, _, name in map(str.split, listed.splitlines())}
        walked = monitor.human(f"gva2gpa {self._at['_text']:#x}").split()[-1]
        self._shift = self._at["_text"] - int(walked, 16)
        self.places = [(name, self._physical(first), self._physical(end))
                       for name, first, end in self.BLOCKS]
        self.places += [(name, self._physical(name), self._physical(name) + PAGE) for name in self.PAGES]
        self.places.append((FIRST_640_KIB, 0, 640 << 10))
        user = self._physical(self.USER_HALF) | PAGE
        self.places.append(("user half", user, user + PAGE))

    def _physical(self, name):
        return self._at[name] - self._shift

    def look(self):
        """The bytes of each place, in one pause."""
        file = self._folder / "dump"
        found = []
        self._monitor.ask("stop")
        for _, first, end in self.places:
            self._monitor.ask("pmemsave", val=first, size=end - first, filename=str(file))
            found.append(file.read_bytes())
        self._monitor.ask("cont")
        return found

    def changed(self, before, after):
        """The names of places that differ, and how many bytes of each."""
        return {name: differences(one, two)
                for (name, _, _), one, two in zip(self.places, before, after) if one != two}


def differences(before, after):
    """How many bytes differ."""
    return sum(a != b for a, b in zip(before, after)) if before != after else 0
