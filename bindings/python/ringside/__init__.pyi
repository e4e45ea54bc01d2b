from types import TracebackType
from typing import Any, Hashable, Iterator, NamedTuple, Optional, Sequence, Union

__version__: str

class Error(Exception): ...

class CompileError(Error):
    """The D program is wrong at this place, from 1; columns count bytes. `tag` is dtrace's."""
    line: int
    column: int
    tag: str

class MachineGoneError(Error): ...
class StoppedError(Error): ...

class Frame(NamedTuple):
    """Of a stack. `symbol` and `module` are None where nobody knows them."""
    address: int
    name: str
    module: Optional[str]
    symbol: Optional[str]
    offset: Optional[int]

class Bucket(NamedTuple):
    """Of a distribution: `value` is the smallest one that it counts. `range` is "< 0" or the like of
    an open end, else None."""
    value: int
    count: int
    range: Optional[str]

class Record:
    """A firing."""
    @property
    def timestamp(self) -> int: ...
    @property
    def machine(self) -> Optional[str]: ...
    @property
    def cpu(self) -> int: ...
    @property
    def provider(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def function(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def probe(self) -> str:
        """"provider:module:function:name"."""
    @property
    def pid(self) -> Optional[int]:
        """With threads=True; so are tid and execname."""
    @property
    def tid(self) -> Optional[int]: ...
    @property
    def execname(self) -> Optional[str]: ...
    @property
    def text(self) -> str:
        """All that printf() printed."""
    @property
    def values(self) -> list[Any]:
        """The arguments of printf() and trace(), print()'s structures as dictionaries, stacks as lists
        of Frame, tracemem()'s bytes; in the program's order."""
    @property
    def aggregations(self) -> dict[str, dict[Hashable, Any]]:
        """Those that printa() showed here."""
    def as_dict(self) -> dict[str, Any]:
        """The record as docs/output.md describes it."""
    def __getitem__(self, index: int) -> Any: ...
    def __len__(self) -> int: ...

class Trace:
    """A D program that is traced: an iterator over its firings. When it ends, the machine is as it was
    found. If the machine ends first, the iterator raises MachineGoneError behind the last firing. A
    trace that nobody refers to any more is closed."""
    @property
    def aggregations(self) -> dict[str, dict[Hashable, Any]]:
        """As they are now; at the end, the last ones. {name: {key: value}}: the key is a value, a tuple
        of several, or () of none; the value is a number, or a list of Bucket."""
    @property
    def running(self) -> bool: ...
    @property
    def status(self) -> int:
        """D's exit(status)."""
    @property
    def end(self) -> str:
        """"" while it runs; then "exit", "stopped", "buffer full", "machine ended", "machine left" or
        "kernel gone"."""
    @property
    def messages(self) -> list[str]:
        """Lines that the command would print on stderr."""
    @property
    def drops(self) -> list[dict[str, Any]]: ...
    @property
    def errors(self) -> list[dict[str, Any]]:
        """Firings whose evaluation stopped: a bad address, for example."""
    @property
    def statistics(self) -> list[dict[str, Any]]: ...
    def __iter__(self) -> Iterator[Record]: ...
    def __next__(self) -> Record: ...
    def __enter__(self) -> Trace: ...
    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None: ...
    def run(self) -> None:
        """To the end, for programs of which only the aggregations matter."""
    def stop(self) -> None:
        """Orders it to end; the last records follow. On any thread."""
    def close(self) -> None: ...

class KernelObject:
    """A place in the kernel's memory, with its C type. Members are attributes, or items by their names.
    Numbers and texts are values, read when they are asked for; all else is a KernelObject."""
    def __getattr__(self, member: str) -> Any: ...
    def __getitem__(self, index: Union[int, str]) -> Any: ...
    def __int__(self) -> int:
        """Where a pointer points; of all else the address."""
    def __index__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __len__(self) -> int: ...
    def value_(self) -> Any:
        """All of it at once: a structure as a dictionary."""
    def members_(self) -> list[str]: ...
    def on_cpu_(self, cpu: int) -> Any:
        """The copy of a per-CPU variable that a CPU has."""
    @property
    def type_(self) -> str: ...
    @property
    def address_(self) -> int: ...
    @property
    def size_(self) -> int: ...

class Kernel:
    def __getitem__(self, variable: str) -> KernelObject:
        """A variable of the kernel, or of a module: "module`name"."""
    def at(self, type: str, address: int) -> KernelObject: ...
    def read(self, address: int, size: int) -> bytes: ...

class Machine:
    def __init__(self, target: str) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def kernel(self) -> Kernel: ...
    def trace(self, program: str, *, seconds: Optional[float] = None,
              arguments: Sequence[str] = (), **options: Union[str, int, bool]) -> Trace:
        """Traces a D program; all its probes stand when this returns. `arguments` are $1, $2...; options
        are those of -x (bufsize="16m"), with True for a switch. `seconds`: after which it ends."""
    def probes(self, description: str = "") -> list[str]: ...
    def look(self, name: str) -> dict[str, Any]:
        """"ps", "threads", "dmesg", "modules", "mounts", "lsof" or "netstat", with notes on what is
        missing; docs/commands.md has the fields."""
    def ps(self) -> list[dict[str, Any]]: ...
    def threads(self) -> list[dict[str, Any]]: ...
    def dmesg(self) -> list[dict[str, Any]]: ...
    def modules(self) -> list[dict[str, Any]]: ...
    def mounts(self) -> list[dict[str, Any]]: ...
    def lsof(self) -> list[dict[str, Any]]: ...
    def netstat(self) -> list[dict[str, Any]]: ...
    def why(self) -> dict[str, Any]:
        """Why it hangs, if it does (docs/why.md)."""
    def close(self) -> None:
        """Ends its traces, too. Records and results that are there already remain."""
    def __enter__(self) -> Machine: ...
    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None: ...

def attach(target: str) -> Machine: ...
