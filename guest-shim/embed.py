"""Writes a binary file as a C array: embed.py INPUT OUTPUT. Used at build time for the shim."""

import sys


def main() -> None:
    data = open(sys.argv[1], "rb").read()
    with open(sys.argv[2], "w") as out:
        out.write('#include "guest-shim/mailbox_abi.h"\n\n')
        out.write(f"const unsigned int shim_image_size = {len(data)};\n")
        out.write("const unsigned char shim_image[] = {\n")
        for start in range(0, len(data), 16):
            row = ", ".join(f"0x{byte:02x}" for byte in data[start : start + 16])
            out.write(f"    {row},\n")
        out.write("};\n")


main()
