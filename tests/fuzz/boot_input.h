// The work of both boot targets on their bytes, and their first inputs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ringside::fuzz {

/// Loads the bytes as a kernel into RAM of 64 MiB, with an initrd and a command line; a CHECK fails
/// when an error has no message or more than one line, or a kernel starts outside RAM.
void boot(std::span<const std::byte> file);

/// Kernels of each kind, small.
std::vector<std::vector<std::byte>> elf_kernels();
std::vector<std::vector<std::byte>> bz_images();

}  // namespace ringside::fuzz
