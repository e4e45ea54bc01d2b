// BTF, the kernel's compact type information (Documentation/bpf/btf.rst; include/uapi/linux/btf.h,
// version 1), read into a TypeGraph. vmlinux's lies between __start_BTF and __stop_BTF; a module's
// is "split": its type ids and string offsets continue where vmlinux's end.
// Used by Kernel. Pure: works on copied bytes. Hostile input: every id, offset and count is
// checked. A type that is wrong becomes void or is left out. Names are cut at 512 characters, and
// bytes that do not print become '?'. TypeGraph's bounded walks deal with cycles.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/base/result.h"
#include "vmm/linux/name_index.h"

namespace ringside::guest_linux {

/// A limit that no kernel or module comes near: 6.12's BTF has 4.7 MB.
inline constexpr std::size_t kMaxBtfBytes = 64 << 20;

/// One BTF blob's types after they went into a TypeGraph: what a split BTF needs of its base, and
/// the functions' prototypes.
class Btf {
 public:
  /// Adds all types of `blob` to `graph`, which keeps a copy of its strings. The types of vmlinux's
  /// variables can be found there by variable_key() and percpu_variable_key(): kernels describe the
  /// per-CPU ones, and newer ones (pahole 1.28 and later, if asked to) all global ones. `base`:
  /// vmlinux's for a module, null for vmlinux. `blob` and `base` are needed only during the call.
  /// Invalid when the header or the outline of the type section is malformed; then the graph is
  /// unchanged.
  static Result<Btf> read(std::span<const std::byte> blob, const Btf* base, TypeGraph& graph);

  /// Whether the type in the graph is one that this blob added.
  bool has(TypeId id) const { return id >= first_ && id.value - first_.value < count_; }
  /// The prototype (TypeKind::Function) of the function of that name.
  std::optional<TypeId> prototype(std::string_view function) const;
  /// How many functions there are for whose name `is_known` holds, and how many in all.
  struct FunctionCount {
    std::size_t known = 0, all = 0;
  };
  FunctionCount count_functions(const std::function<bool(std::string_view)>& is_known) const;
  struct PercpuVariable {
    std::string_view name;
    std::uint32_t offset = 0;  // from the start of all per-CPU variables
  };
  std::span<const PercpuVariable> percpu_variables() const { return percpu_; }

 private:
  friend class BtfReader;
  struct Function {
    std::string_view name;
    TypeId prototype;
  };

  std::span<const std::byte> strings_;  // in the graph's copy
  TypeId first_;                        // of those that have a place of their own in the graph
  std::size_t count_ = 0;
  std::vector<TypeId> ids_;  // of BTF id 1 + i; in a module's, of the base's last + 1 + i
  std::vector<Function> functions_;
  NameIndex by_name_;
  std::vector<PercpuVariable> percpu_;
};

}  // namespace ringside::guest_linux
