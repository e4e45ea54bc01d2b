// The header of an ELF file of this architecture that we write (gABI 4.1, "ELF Header").
#pragma once

#include <elf.h>

#include <cstring>

namespace ringside::arch {

/// `type`: ET_EXEC, ET_CORE... Neither segments nor sections yet.
inline Elf64_Ehdr elf_header(Elf64_Half type) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = type;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  return header;
}

}  // namespace ringside::arch
