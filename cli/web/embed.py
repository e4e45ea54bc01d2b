"""Makes a C++ source of the page's files, so that the server needs none at run time: embed.py OUTPUT FILE..."""

import pathlib
import sys

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# Compilers need not take longer literals.
PIECE = 8192


def literal(text):
    """The text as string literals that follow each other."""
    data = text.encode()
    pieces = [data[at:at + PIECE] for at in range(0, len(data), PIECE)] or [b""]
    return "\n".join('    "' + "".join(escaped(byte) for byte in piece) + '"' for piece in pieces)


def escaped(byte):
    """A byte in a literal. Octal escapes end after three digits, so nothing that follows can join them."""
    return chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"


def main():
    """Writes the source."""
    output, *files = map(pathlib.Path, sys.argv[1:])
    rows = [f'{{"/{"" if file.name == "index.html" else file.name}", "{TYPES[file.suffix]}; charset=utf-8",\n'
            f"{literal(file.read_text())}}}" for file in files]
    output.write_text('#include "cli/web/page_files.h"\n\nnamespace ringside::cli {\n\nconst std::vector<PageFile>& '
                      "page_files() {\n  static const std::vector<PageFile> files{\n  " + ",\n  ".join(rows)
                      + "};\n  return files;\n}\n\n}  // namespace ringside::cli\n")


if __name__ == "__main__":
    main()
