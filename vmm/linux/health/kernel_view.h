// The kernel's structures read by their names: fields by its own types, variables by its symbols,
// per-CPU data by its bases. A value that this kernel does not have, or that cannot be read, is
// empty, and the caller says so instead of guessing.
// Used by the parts of a health report and by lists of what a guest has. Hostile input: everything
// is a copy; texts become printable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// A member of a structure, a pointer or a number.
struct Field {
  std::uint32_t offset = 0;  // bytes from the structure's start
  std::uint8_t bytes =
      0;  // 1, 2, 4 or 8; 0: a structure or an array, of which only the place is known
  std::uint8_t bit_shift = 0, bit_width = 0;  // of a bit-field in those bytes; width 0: none
  bool is_signed = false;
};

/// The value of a field in a copy of the first bytes of its structure; signed ones are extended.
/// Empty where the copy does not reach so far, or the field is no number.
std::optional<std::uint64_t> value_in(std::span<const std::byte> structure,
                                      const std::optional<Field>& field);

class KernelView {
 public:
  /// Both must outlive this.
  KernelView(const Kernel& kernel, const GuestReader& reader) : kernel_(kernel), reader_(reader) {}

  const Kernel& kernel() const { return kernel_; }
  const GuestReader& reader() const { return reader_; }
  const TypeGraph& types() const { return kernel_.types(); }

  /// The first of `paths` that `structure` (or union) has. A path is members with dots between:
  /// "se.exec_start". Versions name things differently, hence several.
  std::optional<Field> field(std::string_view structure,
                             std::initializer_list<std::string_view> paths) const;
  std::optional<Field> field(std::string_view structure, std::string_view path) const {
    return field(structure, {path});
  }
  /// Bytes of a structure or union; 0 when the kernel has none of that name.
  std::uint64_t size_of(std::string_view structure) const;
  /// How many elements the array has that a member is; empty when it is none.
  std::optional<std::uint32_t> length_of(std::string_view structure, std::string_view member) const;
  std::optional<std::int64_t> enumerator(std::string_view name) const;

  /// The value of the field of the structure at `structure`; signed ones are extended.
  std::optional<std::uint64_t> value(std::optional<GuestVirt> structure,
                                     const std::optional<Field>& field) const;
  std::optional<GuestVirt> pointer(GuestVirt structure, const std::optional<Field>& field) const;
  template <class T>
  std::optional<T> load(std::optional<GuestVirt> at) const {
    if (!at) return std::nullopt;
    const auto loaded = ringside::load<T>(reader_, *at);
    return loaded ? std::optional(*loaded) : std::nullopt;
  }
  /// Up to its NUL or `most` characters, printable.
  std::string text(GuestVirt at, std::size_t most) const;
  /// The same as it is in the guest: any bytes but NUL.
  std::string raw_text(GuestVirt at, std::size_t most) const;

  /// The address of a symbol of vmlinux.
  std::optional<GuestVirt> symbol(std::string_view name) const;
  template <class T>
  std::optional<T> variable(std::string_view name) const {
    return load<T>(symbol(name));
  }
  /// A CPU's copy of a per-CPU variable.
  std::optional<GuestVirt> percpu(std::string_view name, std::uint32_t cpu) const;
  std::uint32_t cpu_count() const {
    return static_cast<std::uint32_t>(kernel_.percpu_bases().size());
  }
  /// "vfs_read+0x10", with the module after it where it is one: "lo_ioctl+0x4 [loop]".
  std::string code_name(std::uint64_t address) const;

  /// Calls `each` with every node of a circular list but its head, at most `most` of them; false
  /// when the list does not close, or each() says so. The guest may change it meanwhile.
  bool walk_list(GuestVirt head, std::size_t most,
                 const std::function<bool(GuestVirt)>& each) const;

 private:
  std::optional<TypeId> structure(std::string_view name) const;
  std::optional<Field> field_in(TypeId type, std::string_view path) const;

  const Kernel& kernel_;
  const GuestReader& reader_;
};

}  // namespace ringside::guest_linux
