// A bound target as the output sees it: its program, the names of its probes and of its code.
#pragma once

#include <cstdint>
#include <string>

#include "cli/output/output.h"
#include "providers/tracer/target.h"

namespace ringside::cli {

class TargetView : public ProgramView {
 public:
  /// `process` is the session's own ($target), 0 for none: whose code a bare address of %A is in.
  TargetView(const providers::Target& target, std::int64_t process)
      : target_(&target), process_(static_cast<std::uint64_t>(process)) {}

  std::string machine() const override { return target_->name(); }
  const dif::Program& program() const override { return target_->program(); }
  const dif::EcbInfo& ecb(dif::EcbId id) const override { return target_->engine().ecb(id); }
  const dif::ProbeDescription& probe_name(dif::ProbeId probe) const override {
    return target_->engine().probe_name(probe);
  }
  /// snapshot(): an ELF core (vmm/saved) of the machine, which is paused meanwhile unless a firing
  /// holds it already. The file must not exist. Shows progress on a terminal. Returns a line on
  /// what was written; the error names the file.
  Result<std::string> snapshot(const std::string& path) const override;
  std::string describe(GuestVirt address) const override;
  std::string describe_user(std::uint64_t pid, GuestVirt address) const override;

 private:
  const providers::Target* target_;
  std::uint64_t process_;
};

}  // namespace ringside::cli
