"""A disk whose server stops to answer when it is told to: an NBD server (fixed newstyle, the only export)
on a socket of the filesystem, for one QEMU. It reads as zeros and forgets what is written.
"""

import pathlib
import socket
import struct
import tempfile
import threading

SIZE = 64 << 20
# NBD's protocol document, "Newstyle negotiation" and "Transmission phase".
GREETING, OPTION_REPLY, REPLY = b"NBDMAGICIHAVEOPT", 0x3E889045565A9, 0x67446698
EXPORT_NAME, INFO, GO = 1, 6, 7
ACK, INFO_REPLY, UNSUPPORTED = 1, 3, 0x80000001
READ, WRITE, DISCONNECT = 0, 1, 2
FIXED_NEWSTYLE, HAS_FLAGS_AND_FLUSH = 1, 5


class StallingDisk:
    """A context manager; `options` are QEMU's for a virtio disk."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="ringside-disk-")
        path = pathlib.Path(self._folder.name) / "nbd"
        self.options = ["-drive", f"driver=nbd,server.type=unix,server.path={path},if=none,id=d0,cache.direct=on",
                        "-device", "virtio-blk-pci,drive=d0"]
        self._answers = threading.Event()
        self._answers.set()
        self.is_waited_for = threading.Event()  # a request has come that has no answer yet
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stall(self):
        """From now on nothing is answered."""
        self.is_waited_for.clear()
        self._answers.clear()

    def go_on(self):
        """Answers, also what has been asked meanwhile."""
        self._answers.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.go_on()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        self._folder.cleanup()

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, client.makefile("rb") as asked:
                try:
                    self._negotiate(client, asked)
                    self._transmit(client, asked)
                except (OSError, struct.error):
                    pass  # QEMU has gone

    def _negotiate(self, client, asked):
        client.sendall(GREETING + struct.pack(">H", FIXED_NEWSTYLE))
        asked.read(4)
        export = struct.pack(">QH", SIZE, HAS_FLAGS_AND_FLUSH)
        while True:
            _, option, length = struct.unpack(">QII", asked.read(16))
            asked.read(length)
            if option == EXPORT_NAME:
                client.sendall(export)
                return
            if option not in (INFO, GO):
                client.sendall(struct.pack(">QIII", OPTION_REPLY, option, UNSUPPORTED, 0))
                continue
            client.sendall(struct.pack(">QIIIH", OPTION_REPLY, option, INFO_REPLY, 2 + len(export), 0) + export
                           + struct.pack(">QIII", OPTION_REPLY, option, ACK, 0))
            if option == GO:
                return

    def _transmit(self, client, asked):
        while True:
            _, _, kind, handle, _, length = struct.unpack(">IHHQQI", asked.read(28))
            if kind == DISCONNECT:
                return
            if kind == WRITE:
                asked.read(length)
            if not self._answers.is_set():
                self.is_waited_for.set()
            self._answers.wait()
            client.sendall(struct.pack(">IIQ", REPLY, 0, handle) + bytes(length if kind == READ else 0))
