"""DTrace for virtual machines: traces a running Linux guest from its host, by a D program.

    with ringside.attach("web1") as vm:
        for record in vm.trace("syscall::openat:entry { trace(copyinstr(arg1)); }", seconds=5):
            print(record[0])

docs/library.md has more.
"""

from ringside._ringside import (Bucket, CompileError, Error, Frame, Kernel, KernelObject, Machine,
                                MachineGoneError, Record, StoppedError, Trace, __version__)

__all__ = ["Bucket", "CompileError", "Error", "Frame", "Kernel", "KernelObject", "Machine",
           "MachineGoneError", "Record", "StoppedError", "Trace", "attach", "__version__"]


def attach(target):
    """The running machine that `target` names, as `ringside --attach` takes it: a libvirt domain,
    "qmp:SOCKET" or "pid:N". Nothing enters it before trace()."""
    return Machine(target)
