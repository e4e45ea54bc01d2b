// The loaded modules of a guest's kernel, as lsmod and /proc/modules show them.
// Source: the list `modules` of struct module (include/linux/module.h); sizes in core_layout,
// init_layout and data_layout up to 6.3, in mem[] since 6.4; refcnt, which is one more than the
// references while the module is live; source_list of struct module_use, the modules that use it.
// Used by `modules`. Does not: read symbols or types of modules (vmm/linux/modules.h). Hostile
// input: bounded; raw bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vmm/linux/listing/listing.h"

namespace ringside::guest_linux {

struct ModuleRow {
  std::string name;
  std::uint64_t size = 0;                  // bytes
  std::optional<std::int64_t> references;  // empty: this kernel does not unload modules
  std::vector<std::string> used_by;        // modules
  bool is_permanent = false;               // it has no way to be unloaded
  std::string state;                       // "live", "loading", "unloading"
  GuestVirt address;                       // of its code
};

/// In the kernel's order, the newest first.
Result<Listing<ModuleRow>> list_loaded_modules(const ListedGuest& guest);

}  // namespace ringside::guest_linux
