#!/usr/bin/env python3
"""Checks that every include keeps to the layer table, that no folders include each other in a circle,
that outside tests no address is added to, or made by taking from one, as a bare number, which can wrap
unnoticed, and that no comment begins with "What": tests/check_layers.py [ROOT]

Run as a meson test; the table is the one of ARCHITECTURE.md. A file belongs to the longest folder
of the table that it lies in. Does not: follow what an included file includes in its turn.
"""

import pathlib
import re
import sys

ABI = "guest-shim/mailbox_abi.h"
LAUNCHERS = ("vmm/kvm/start_kvm.h", "vmm/qemu/start_qemu.h")
ATTACHERS = ("vmm/attach/attach.h", "vmm/attach/host/attach_target.h", "vmm/attach/host_share.h",
             "vmm/attach/host_vms.h")

# folder: what its files may include besides the folder itself; a folder here means that folder
# without those below it that have a row of their own. Who may include VMM may include WITH_VMM.
VMM, WITH_VMM = "vmm", ("vmm/base", "vmm/arch")
LAYERS = {
    "vmm/base": (),
    "vmm/arch": ("vmm/base",),
    "guest-shim": (),
    "disasm": ("vmm/base", "vmm/arch"),
    "dif": ("vmm/base",),
    "dif/d": ("dif", "vmm/base"),
    "vmm": (*WITH_VMM, ABI),
    "vmm/kernel_file": ("vmm",),
    "vmm/qemu": ("vmm", "vmm/kvm/host"),
    "vmm/kvm": ("vmm", "vmm/kernel_file", "vmm/kvm/boot", "vmm/kvm/devices", "vmm/kvm/host"),
    "vmm/kvm/boot": ("vmm", "vmm/kernel_file"),
    "vmm/kvm/devices": ("vmm", "vmm/kvm/host"),
    "vmm/kvm/host": ("vmm",),
    "vmm/linux": ("vmm", "vmm/kernel_file"),
    "vmm/attach": ("vmm", "vmm/linux", "vmm/qemu", "vmm/kvm/host", ABI),
    "vmm/linux/health": ("vmm", "vmm/linux"),
    "vmm/linux/listing": ("vmm", "vmm/linux", "vmm/linux/health"),
    "vmm/saved": ("vmm",),
    "providers": ("providers/trap_points", "vmm", "vmm/linux", "dif", "disasm"),
    "providers/trap_points": ("vmm", "vmm/linux", "disasm"),
    "cli": ("providers", "vmm", "vmm/kernel_file", "vmm/linux", "vmm/linux/health", "vmm/linux/listing",
            "vmm/saved", "dif", "dif/d", *LAUNCHERS, *ATTACHERS),
    "library": ("cli", "providers", "vmm", "vmm/linux", "vmm/linux/health", "dif", *ATTACHERS),
    "bindings": ("library",),
}

# System headers that only these folders may know. A header that includes one is private to them.
FOREIGN = (
    (re.compile(r"(Zydis|Zycore|capstone)/"), ("disasm",)),
    (re.compile(r"asmjit/"), ("dif",)),
    (re.compile(r"linux/kvm\.h"), ("vmm/kvm", "vmm/kvm/host", "vmm/attach")),
    (re.compile(r"microhttpd\.h"), ("cli",)),
    (re.compile(r"libvirt/"), ("vmm/attach",)),
    (re.compile(r"(libelf|gelf)\.h"), ("vmm/kernel_file",)),
    (re.compile(r"(elfutils/libdw|dwarf)\.h"), ("vmm/linux",)),
    (re.compile(r"elfutils/"), ("vmm/linux",)),
)

# Address has checked_add(), wrapping_add() and wrapping_sub() instead (vmm/base/address.h).
BARE_SUM = re.compile(r"(?:\.|->)raw\(\)\s*\+")
# A difference is only refused where an address is made of it: that of two addresses is a length.
BARE_DIFFERENCE = re.compile(r"(?:\.|->)raw\(\)\s*-")
ADDRESS_MADE = re.compile(r"\bGuest(?:Virt|Phys)\b(?:\s+\w+)?\s*[({]")
OF_TESTS = re.compile(r"_test\.|_for_tests\.|(^|/)fake_|/testing/")

# "What it counts." says nothing of the thing itself; "The counts of one CPU." does.
HEADLESS = re.compile(r'^(?:.*[ \t])?(?://[/!<]*|/?\*+|#|""")[ \t]*What\s', re.MULTILINE)

SUFFIXES = {".h", ".cc", ".c", ".S", ".ld", ".l", ".y", ".def"}
# Of all that lies in these folders, and of these kinds everywhere, only comments are looked at.
COMMENTED_FOLDERS = (".ci", "examples", "images", "tests")
COMMENTED_SUFFIXES = SUFFIXES | {".d", ".in", ".py", ".build", ""}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def layer_of(path):
    """The row that a path belongs to, or None."""
    best = None
    for layer in LAYERS:
        if path.startswith(layer + "/") and len(layer) > len(best or ""):
            best = layer
    return best


def quoted_violation(path, layer, included, private):
    """Why a file may not include one of our own headers, or None."""
    if "/" not in included:
        # A generated parser's header lies beside it in the build folder only.
        generated = pathlib.PurePath(path).suffix in (".l", ".y")
        return None if generated else f'"{included}": includes are written from the root'
    target = layer_of(included)
    if target is None:
        if included.startswith("tests/") and "_test." in path:
            return None
        return f'"{included}" is in no folder of the layer table'
    if layer not in private.get(included, (layer,)):
        return f'"{included}" shows what stays inside {target}'
    allowed = LAYERS[layer] + (WITH_VMM if VMM in LAYERS[layer] else ())
    if target == layer or target in allowed or included in allowed:
        return None
    return f'"{included}": {layer} may not include {target}'


def system_violation(layer, included):
    """Why a file may not include a system header, or None."""
    for pattern, owners in FOREIGN:
        if pattern.match(included) and layer not in owners:
            return f"<{included}> stays inside {owners[0]}"
    return None


def read_files(root, folders, suffixes):
    """{path from the root: text} of the files in these folders that end so."""
    return {file.relative_to(root).as_posix(): file.read_text(errors="replace")
            for folder in sorted(folders) for file in sorted((root / folder).rglob("*"))
            if file.suffix in suffixes and file.is_file()}


def private_headers(sources):
    """{header: the folders that may include it}, for those with a system header that stays inside."""
    return {path: owners for path, text in sources.items() for match in INCLUDE.finditer(text)
            for pattern, owners in FOREIGN if match[2] and pattern.match(match[2])}


def folder_includes(sources):
    """{folder: {another folder: the first include that leads there, as (path, line)}}, outside tests
    and benchmarks. Here a folder is without those below it."""
    edges = {}
    for path, text in sorted(sources.items()):
        folder = path.rpartition("/")[0]
        for match in INCLUDE.finditer(text):
            target = (match[1] or "").rpartition("/")[0]
            is_product = not OF_TESTS.search(path) and "_bench." not in path
            if match[1] in sources and target != folder and is_product:
                line = text.count("\n", 0, match.start(1)) + 1
                edges.setdefault(folder, {}).setdefault(target, (path, line))
    return edges


def way_between(edges, start, end):
    """The folders of a shortest way by includes from one folder to another, or None."""
    ways = [(start,)]
    seen = {start}
    for way in ways:
        if way[-1] == end:
            return way
        for following in sorted(edges.get(way[-1], {})):
            if following not in seen:
                seen.add(following)
                ways.append((*way, following))
    return None


def circles(sources):
    """One violation for each two folders of which one includes the other and is reached from it."""
    edges = folder_includes(sources)
    found = []
    for folder, targets in sorted(edges.items()):
        for target, (path, line) in sorted(targets.items()):
            back = way_between(edges, target, folder)
            if back:
                found.append((path, line, f"folders in a circle: {' -> '.join((folder, *back))}"))
    return found


def lines_with(pattern, text):
    """The lines, from 1 on, in which a pattern begins."""
    return [text.count("\n", 0, match.start(0)) + 1 for match in pattern.finditer(text)]


def end_of_group(text, at):
    """Where the bracket that opens before `at` closes."""
    depth = 1
    while depth > 0 and at < len(text):
        depth += (text[at] in "({[") - (text[at] in ")}]")
        at += 1
    return at


def bare_sums(path, text):
    """The lines, from 1 on, of a source in which an address is added to, or made by taking from
    one, as a bare number."""
    if OF_TESTS.search(path):
        return []
    found = {match.start(0) for match in BARE_SUM.finditer(text)}
    for made in ADDRESS_MADE.finditer(text):
        inside = end_of_group(text, made.end(0))
        found |= {match.start(0) for match in BARE_DIFFERENCE.finditer(text, made.end(0), inside)}
    return [text.count("\n", 0, at) + 1 for at in sorted(found)]


def check(root):
    """Every violation below `root` as (path, line, why), and how many files were read."""
    tops = {layer.split("/")[0] for layer in LAYERS}
    commented = read_files(pathlib.Path(root), tops.union(COMMENTED_FOLDERS), COMMENTED_SUFFIXES)
    sources = {path: text for path, text in commented.items()
               if path.split("/")[0] in tops and pathlib.PurePath(path).suffix in SUFFIXES}
    private = private_headers(sources)
    violations = []
    for path, text in sources.items():
        layer = layer_of(path)
        for match in INCLUDE.finditer(text):
            if layer is None:
                why = f"{path} is in no folder of the layer table"
            elif match[1]:
                why = quoted_violation(path, layer, match[1], private)
            else:
                why = system_violation(layer, match[2])
            if why:
                violations.append((path, text.count("\n", 0, match.start(0)) + 1, why))
        violations += [(path, line, "a bare sum or difference of an address: use checked_add(), "
                        "wrapping_add() or wrapping_sub()")
                       for line in bare_sums(path, text)]
    violations += circles(sources)
    for path, text in commented.items():
        violations += [(path, line, "a comment that begins with \"What\": name the thing first")
                       for line in lines_with(HEADLESS, text)]
    return violations, len(sources)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1]
    violations, files = check(root)
    for path, line, why in violations:
        print(f"{path}:{line}: {why}")
    if files == 0:
        print(f"{root}: no sources here")
    sys.exit(1 if violations or files == 0 else 0)


if __name__ == "__main__":
    main()
