#include "cli/program/bind_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/program/environment.h"
#include "dif/bind/bind.h"
#include "vmm/page_walk.h"

namespace ringside::cli {

namespace {

using guest_linux::KernelPartIdentity;

std::optional<KernelPartIdentity> identify(const providers::Target& target,
                                           const std::string& module) {
  if (target.held_kernel() != nullptr) {
    return guest_linux::identify(*target.kernel(), target.held_kernel()->text(), module);
  }
  const vmm::PageTableReader memory(target.machine()->memory(), target.kernel()->table());
  return guest_linux::identify(*target.kernel(), memory, module);
}

tl::unexpected<Error> refuse(const std::string& name, const std::string& why) {
  return fail(ErrorCode::Unsupported, fmt::format("{} was compiled for {}", name, why));
}

/// The build, which tells kernels of one release apart, as short as people write it.
std::string short_build(const std::string& build) {
  constexpr std::size_t kShown = 12;
  return build.substr(0, build.starts_with("names-") ? build.npos : kShown);
}

}  // namespace

Result<void> record_kernel(dif::Program& program, const providers::Target& target) {
  // The arguments of probes like vm's have D's own types, whatever module the probes name.
  std::erase_if(program.needs, [&](const dif::KernelNeed& need) {
    if (target.kernel() == nullptr) return true;
    const auto modules = target.kernel()->symbols().modules();
    return std::ranges::find(modules, need.module, &guest_linux::Module::name) == modules.end();
  });
  for (dif::KernelNeed& need : program.needs) {
    const auto identity = identify(target, need.module);
    if (!identity || identity->types == 0) {
      return fail(
          ErrorCode::Unsupported,
          fmt::format("the program is for this kernel only: it contains {} of {}, which has no "
                      "name, and that module's types cannot be told from others; load it again, "
                      "or run the program at once, on this machine only",
                      need.type, need.module));
    }
    need.release = target.kernel()->release();
    need.build = identity->build;
    need.types_hash = identity->types;
  }
  return {};
}

Result<void> check_need(const dif::KernelNeed& need, const std::string& release,
                        const std::optional<KernelPartIdentity>& now, const std::string& name) {
  if (!now) {
    return refuse(name, fmt::format("Linux {} with the module {}, which is not loaded in the Linux "
                                    "{} here: load it, or compile the program again here",
                                    need.release, need.module, release));
  }
  if (need.types_hash == now->types) return {};
  const std::string of = need.module != "vmlinux" ? " of its module " + need.module : "";
  return refuse(name,
                fmt::format("Linux {} (build {}) and contains {}{}, which has no name to find "
                            "it by in the Linux {} (build {}) here: compile the program again "
                            "here",
                            need.release, short_build(need.build), need.type, of, release,
                            short_build(now->build)));
}

Result<dif::Program> bind_program(const dif::Program& program, const providers::Target& target,
                                  d::Environment& environment, const std::string& name,
                                  CompiledFor kernel) {
  if (target.kernel() == nullptr && !program.kernel_names.empty()) {
    return refuse(name, fmt::format("a kernel that has {}, but there is no guest: {}",
                                    dif::describe(program.kernel_names[0]), kNameAGuest));
  }
  for (const dif::KernelNeed& need : program.needs) {
    if (kernel == CompiledFor::ThisKernel) break;
    if (target.kernel() == nullptr) {
      return refuse(name,
                    fmt::format("Linux {}, but there is no guest: {}", need.release, kNameAGuest));
    }
    TRY(check_need(need, std::string(target.kernel()->release()), identify(target, need.module),
                   name));
  }
  auto bound = dif::bind(program, environment, target.name());
  if (bound) return bound;
  const std::string here =
      target.kernel() != nullptr ? fmt::format(" on Linux {}", target.kernel()->release()) : "";
  return fail(bound.error().code,
              fmt::format("{} cannot run{}: {}", name, here, bound.error().message));
}

}  // namespace ringside::cli
