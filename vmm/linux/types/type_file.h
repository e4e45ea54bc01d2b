// The types of a kernel from a file of the user's (--types): a vmlinux or bzImage of the same build
// with a section .BTF, or BTF alone, like /sys/kernel/btf/vmlinux.
// The build is checked before the types are used. A vmlinux must have the build id of the running
// kernel, or else its banner. BTF alone has neither. So the file's layouts are compared with the
// kernel: each size and offset in VMCOREINFO, the offsets of a task's name and ids, the addresses
// of per-CPU variables, and the names of functions. Another build that differs in none of these is
// not noticed. Used by Kernel. The file may be damaged: it is checked as a guest's types are.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/types/btf.h"
#include "vmm/linux/vmcoreinfo.h"

namespace ringside::guest_linux {

class TypeFile {
 public:
  /// NotFound, or Invalid for a file without types, with what to do.
  static Result<TypeFile> open(const std::string& path);
  /// Empty for an empty path.
  static Result<std::optional<TypeFile>> open_if_named(const std::string& path);

  /// A kernel to compare with. `memory` reads it; `info` is null where it does not run yet.
  struct Guest {
    const SymbolTable& symbols;
    const GuestReader& memory;
    std::string_view release;
    const VmcoreInfo* info = nullptr;
  };
  /// Adds the types to `types`. Invalid, with the difference, for another build's.
  Result<Btf> read_for(const Guest& guest, TypeGraph& types) const;

 private:
  TypeFile(std::string path, std::vector<std::byte> btf)
      : path_(std::move(path)), btf_(std::move(btf)) {}
  Result<void> compare_build(const Guest& guest) const;
  Result<void> compare_layouts(const Guest& guest, const Btf& btf, const TypeGraph& types) const;

  std::string path_;
  std::vector<std::byte> btf_;
  std::optional<vmm::KernelFile> kernel_;  // none: BTF alone
  std::string build_id_;                   // of kernel_; empty: it has none
};

}  // namespace ringside::guest_linux
