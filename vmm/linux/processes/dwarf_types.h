// Types of a program's functions, by the DWARF of an ELF file (file_bytes.h): versions 2 to 5,
// sections packed by zlib or zstd, type units, and a second file with which it shares types (dwz).
// Not: split DWARF (.dwo), relocatable files. Read by libdw, from a copy (dwarf_image.h).
// Hostile input: every byte is the file's. Counts are bounded (dwarf_type_reader.h).
// Used by the provider pid.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/base/result.h"
#include "vmm/linux/processes/file_bytes.h"
#include "vmm/linux/processes/file_elf.h"
#include "vmm/linux/processes/host_files.h"

namespace ringside::guest_linux {

/// DWARF's words about a function. A type that is void, but for the result, is not known.
struct FunctionTypes {
  TypeId result;  // void: it returns nothing, or its type is in a file that is not there
  /// Of an argument that is passed by reference because of its class, this is a pointer to it.
  /// void: its type is not known.
  std::vector<TypeId> types{};
  std::vector<std::string> names{};  // "": it has none
  /// By argument: 0 to 5 are the integer argument registers, rdi to r9; from 6 on come the words on
  /// the stack above the return address. Empty where it arrives in an SSE register, is a structure
  /// in memory or in two registers, or nobody knows (argument_places.h).
  std::vector<std::optional<unsigned>> places{};
};

class DwarfTypes {
 public:
  /// Bytes of DWARF, unpacked, that are read of a file of the host's, and of one of a guest's.
  static constexpr std::uint64_t kMostOfHost = 512 << 20, kMostOfGuest = 64 << 20;

  /// A file with its headers.
  struct File {
    const FileBytes& bytes;
    const FileElf& elf;
  };
  /// `shared`: the file with which it shares types, by shared_types_link(); null: types there are
  /// void. The files are needed during the call only. NotFound: it has no DWARF, or
  /// not all of it is in memory. Limit: it has more than `most` bytes. Invalid: it is damaged.
  static Result<DwarfTypes> read(const File& file, std::uint64_t most,
                                 const File* shared = nullptr);
  /// Of a file of the guest: as far as the guest has its DWARF in memory, else of the host's
  /// copies. `host`: null for none. Errors: those of read().
  static Result<DwarfTypes> find(const HostFiles::Wanted& wanted, HostFiles* host);
  DwarfTypes(DwarfTypes&&) noexcept;
  DwarfTypes& operator=(DwarfTypes&&) noexcept;
  ~DwarfTypes();

  /// The function whose code begins at this link-time address, and which the symbol table calls
  /// `symbol`. Its types are added to `graph`, the same one in every call. NotFound: DWARF does not
  /// know it. Unsupported: the compiler has changed it, or where its arguments arrive is not known.
  Result<FunctionTypes> function_at(std::uint64_t address, std::string_view symbol,
                                    TypeGraph& graph);

 private:
  class Search;
  explicit DwarfTypes(std::unique_ptr<Search> search);

  std::unique_ptr<Search> search_;
};

}  // namespace ringside::guest_linux
