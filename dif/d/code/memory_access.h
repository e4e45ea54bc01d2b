// Loads and stores at an address that a register holds: numbers, strings, structures, bit-fields.
// Does not: find the address (the code generator does).
#pragma once

#include <cstdint>
#include <optional>

#include "dif/d/code/emitter.h"
#include "dif/d/resolve/kernel_namer.h"
#include "dif/d/syntax/ast.h"
#include "dif/d/types/types.h"

namespace ringside::d {

class MemoryAccess {
 public:
  /// All must outlive this.
  MemoryAccess(const Types& types, KernelNamer& namer, Emitter& out)
      : types_(types), namer_(namer), out_(out) {}

  /// Turns the address in `reg` into that of the member that `e` takes; of a bit-field, of its
  /// unit. `reg` holds the address of what `path` begins in, or of e's structure where there is no
  /// path.
  Checked<void> add_member(const Expr& e, const std::optional<KernelNamer::MemberPath>& path,
                           unsigned reg);
  /// The value of `e`, a scalar that lies at `address`, whose register is taken.
  Checked<unsigned> load(const Expr& e, unsigned address);
  /// Keeps `address` and `value`.
  Checked<void> store(const Expr& e, unsigned address, unsigned value);

 private:
  /// The aligned unit of memory that holds a bit-field.
  struct BitUnit {
    std::uint64_t byte = 0;  // offset from the start of the struct
    unsigned size = 8;
    unsigned shift = 0;  // of the field's lowest bit
  };
  using KernelName = std::optional<KernelNamer::Index>;

  static std::optional<BitUnit> unit_here(const FoundMember& member);
  std::optional<BitUnit> unit_of(const Expr& e);
  KernelName bits_name(const Expr& e, KernelNamer::Kind kind, std::uint64_t value,
                       const BitUnit& unit);
  unsigned skipped_bits(const Expr& e);
  Checked<void> add_offset(unsigned reg, std::uint64_t offset, const Location& at);
  Checked<unsigned> string_length(unsigned value, const Location& at);
  Checked<unsigned> load_bits(const Expr& e, unsigned address);
  Checked<unsigned> load_spread(const Expr& e, unsigned address);
  Checked<void> store_bits(const Expr& e, unsigned address, unsigned value);
  Checked<void> store_spread(const Expr& e, unsigned address, unsigned value);

  const Types& types_;
  KernelNamer& namer_;
  Emitter& out_;
};

}  // namespace ringside::d
