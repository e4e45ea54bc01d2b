// The symbols of a kernel and of its modules: sorted by address, found by name and by address.
// Filled by whoever reads a kernel's symbols; used by everything above vmm/linux.
// A name that thousands of symbols share costs one step each, however it is asked for.
// Fire context: at() and find() yes; describe() and filling no.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/linux/name_index.h"

namespace ringside::guest_linux {

struct Symbol {
  GuestVirt address;
  std::uint64_t size = 0;    // bytes to the next symbol of its section or module; 0: unknown
  std::string_view name;     // owned by the table
  char type = '?';           // nm's letter: t T w W text; d D b B r R data; a A absolute
  std::uint16_t module = 0;  // index into SymbolTable::modules(); 0 is vmlinux

  bool is_text() const { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
};

struct Module {
  std::string name;  // "vmlinux" for index 0
  GuestVirt text_base;
  std::uint64_t text_size = 0;
  std::size_t btf_bytes = 0;  // 0: the module carries no types

  bool has_text_at(GuestVirt at) const { return at.is_in(text_base, text_size); }
};

class SymbolTable {
 public:
  /// Sorted by address; __pfx_ symbols are left out, and those of put_late().
  std::span<const Symbol> symbols() const { return symbols_; }
  std::span<const Module> modules() const { return modules_; }
  /// The first symbol of that name, in vmlinux before modules, or in `module` if it is not empty;
  /// null when there is none.
  const Symbol* find(std::string_view name, std::string_view module = {}) const;
  /// The symbol that covers `address`; null when none does.
  const Symbol* at(GuestVirt address) const;
  /// All symbols that begin at `address`.
  std::span<const Symbol> all_at(GuestVirt address) const;
  /// "mod`name+0x10", "mod`name" or "0x..." as dtrace prints code addresses.
  std::string describe(GuestVirt address) const;

  /// Takes symbols of the lower half as addresses, for kernels other than Linux, whose symbols
  /// there are per-CPU offsets. Call it before seal().
  void accept_low_addresses() { lowest_ = 1; }
  void add_module(Module module, std::vector<Symbol> symbols);
  /// Makes known what was added: sorts, fills sizes and builds the index.
  void seal();
  std::string_view intern(std::string text);
  /// Keeps `names` alive as long as the table: symbols' names may view into it.
  void adopt(std::shared_ptr<const std::string> names);

  /// After seal(): adds a module that the guest has loaded. `symbols` are in any order, within the
  /// range of its text. They are kept apart from symbols(), so that indices and pointers into those
  /// stay valid. If the same module is loaded again, at any address, it has the same index and the
  /// same symbols as before, and their names stay valid. The names of a new module point into
  /// memory that the caller must let the table adopt. An older module whose text lay there is gone.
  /// Empty, and nothing changes, if the module is new and only known modules may come.
  struct Late {
    std::uint16_t module = 0;        // index
    std::optional<Module> before{};  // as it was the last time
  };
  enum class Accept : std::uint8_t { Any, KnownOnly };
  std::optional<Late> put_late(Module module, std::vector<Symbol> symbols, Accept accept);
  /// The symbols of such a module, sorted by address; the span is always valid. Empty for any other
  /// module.
  std::span<const Symbol> late(std::uint16_t module) const;

 private:
  struct LatePart {
    std::uint16_t module = 0;
    std::vector<Symbol> symbols;
  };
  void sort_by_address();
  void fill_sizes(std::vector<Symbol>& symbols) const;
  void build_index();
  bool is_same(const LatePart& part, const Module& module, std::span<const Symbol> symbols) const;
  const Symbol* find_late(std::string_view name, std::string_view module) const;
  std::span<const Symbol> part_at(GuestVirt address) const;

  std::uint64_t lowest_ = std::uint64_t{1} << 63;  // values below it are no addresses
  std::vector<Symbol> symbols_;
  std::vector<Module> modules_;
  std::deque<std::string> blobs_;  // a deque: short strings must not move
  std::vector<std::shared_ptr<const std::string>> adopted_;
  NameIndex by_name_;                     // the first symbol of each name
  std::vector<std::uint32_t> next_same_;  // the next one of the same name, by symbol
  std::deque<LatePart> late_;             // a deque: spans of them are kept
  std::vector<std::size_t> newest_;       // index into late_, the one that came last first
};

}  // namespace ringside::guest_linux
