#include "cli/program/kernel_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "vmm/page_walk.h"

namespace ringside::cli {

namespace {

using guest_linux::KernelPartIdentity;

std::optional<KernelPartIdentity> identify(const Guest& guest, const std::string& module) {
  if (guest.held != nullptr) {
    return guest_linux::identify(*guest.kernel, guest.held->text(), module);
  }
  const vmm::PageTableReader memory(guest.machine->memory(), guest.kernel->table());
  return guest_linux::identify(*guest.kernel, memory, module);
}

tl::unexpected<Error> refuse(const std::string& name, const std::string& why) {
  return fail(ErrorCode::Unsupported, fmt::format("{} was compiled for {}", name, why));
}

/// What kernels of one release are told apart by, as short as people write it.
std::string short_build(const std::string& build) {
  constexpr std::size_t kShown = 12;
  return build.substr(0, build.starts_with("names-") ? build.npos : kShown);
}

std::string_view contents(const dif::KernelNeed& need) {
  if (need.types && need.addresses) return "structure offsets and addresses";
  return need.types ? "structure offsets" : "addresses";
}

}  // namespace

Result<void> record_kernel(dif::Program& program, const Guest& guest) {
  // The arguments of probes like vm's have D's own types, whatever module the probes name.
  std::erase_if(program.needs, [&](const dif::KernelNeed& need) {
    if (guest.kernel == nullptr) return true;
    const auto modules = guest.kernel->symbols().modules();
    return std::ranges::find(modules, need.module, &guest_linux::Module::name) == modules.end();
  });
  for (dif::KernelNeed& need : program.needs) {
    const auto identity = identify(guest, need.module);
    if (!identity || (need.types && identity->types == 0)) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("the program cannot be saved: it contains {} of {}, which cannot be "
                              "told from others; load the module again, or run it at once",
                              contents(need), need.module));
    }
    need.release = guest.kernel->release();
    need.build = identity->build;
    need.types_hash = identity->types;
    need.place = identity->place;
  }
  return {};
}

Result<void> check_need(const dif::KernelNeed& need, const std::string& release,
                        const std::optional<KernelPartIdentity>& now, const std::string& name) {
  const bool is_module = need.module != "vmlinux";
  if (!now) {
    return refuse(name, fmt::format("Linux {} with the module {}, which is not loaded in the Linux "
                                    "{} here: load it, or compile the program again here",
                                    need.release, need.module, release));
  }
  const bool same_types = !need.types || need.types_hash == now->types;
  const bool same_build = !need.addresses || need.build == now->build;
  if (!same_types || !same_build) {
    const std::string of = is_module ? fmt::format(" of its module {}", need.module) : "";
    return refuse(name, fmt::format("Linux {} (build {}) and contains {}{}; Linux {} (build {}) "
                                    "runs here: compile the program again here",
                                    need.release, short_build(need.build), contents(need), of,
                                    release, short_build(now->build)));
  }
  if (!need.addresses || need.place == now->place) return {};
  if (is_module) {
    return refuse(name, fmt::format("a boot of Linux {} that had the module {} elsewhere, and "
                                    "contains addresses in it: compile the program again here",
                                    need.release, need.module));
  }
  return refuse(name,
                fmt::format("another boot of Linux {} and contains addresses; that kernel lay "
                            "at {:#x}, the one here lies at {:#x} (KASLR): compile the "
                            "program again here, or boot with nokaslr",
                            need.release, need.place, now->place));
}

Result<void> check_kernel(const dif::Program& program, const Guest& guest,
                          const std::string& name) {
  for (const dif::KernelNeed& need : program.needs) {
    if (guest.kernel == nullptr) {
      return refuse(name, fmt::format("Linux {} and contains {} of {}, but there is no guest: name "
                                      "one with --image or --kernel",
                                      need.release, contents(need), need.module));
    }
    TRY(check_need(need, std::string(guest.kernel->release()), identify(guest, need.module), name));
  }
  return {};
}

}  // namespace ringside::cli
