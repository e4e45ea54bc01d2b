// The compiler's view of the world: a tracer's probes and a guest kernel's types and symbols.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "dif/d/compile.h"
#include "providers/tracer/tracer.h"
#include "vmm/arch/arch.h"
#include "vmm/base/similar_name.h"
#include "vmm/linux/kernel.h"

namespace ringside::cli {

/// The way out where a program needs a guest and there is none.
inline constexpr std::string_view kNameAGuest = "name one with --attach, --image or --kernel";

/// The part that a kernel alone knows.
class KernelEnvironment : public d::Environment {
 public:
  /// `kernel` and its guest's memory are null without a guest; both must outlive this object.
  KernelEnvironment(const guest_linux::Kernel* kernel, const vmm::GuestMemory* memory)
      : kernel_(kernel),
        memory_(memory),
        types_(kernel != nullptr ? TypeGraph(&kernel->types()) : TypeGraph()) {}

  std::string_view kernel_release() const override {
    return kernel_ != nullptr ? kernel_->release() : std::string_view();
  }
  std::uint64_t register_indices() const override { return arch::kByDNumber.size(); }
  TypeGraph& types() override { return types_; }
  bool has_module(std::string_view name) override;
  std::string type_module(TypeId id) override;
  std::optional<d::KernelVariable> kernel_variable(std::string_view module,
                                                   std::string_view name) override;
  std::string similar_kernel_variable(std::string_view module, std::string_view name) override;

 protected:
  const guest_linux::Kernel* kernel_;
  const vmm::GuestMemory* memory_;
  TypeGraph types_;  // what the program adds to the kernel's, if there is one
};

class TracerEnvironment : public KernelEnvironment {
 public:
  /// As KernelEnvironment; `tracer` must outlive this object. `process` is $target there, 0 for
  /// none.
  TracerEnvironment(providers::Tracer& tracer, const guest_linux::Kernel* kernel,
                    const vmm::GuestMemory* memory = nullptr, std::int64_t process = 0)
      : KernelEnvironment(kernel, memory), tracer_(&tracer), process_(process) {}

  bool has_provider(std::string_view name) override { return tracer_->has_provider(name); }
  /// Remembered by pattern: the compiler asks again for every use of args[].
  d::ProbeSignature signature(const dif::ProbeDescription& pattern) override;
  d::ProbeSignature match(const dif::ProbeDescription& pattern) override;
  void for_each_signature(const dif::ProbeDescription& pattern,
                          const std::function<bool(const d::ProbeSignature&)>& visit) override;
  std::optional<dif::ProbeDescription> probe_by_id(dif::ProbeId id) override;
  std::string why_no_match(const dif::ProbeDescription& pattern) override;
  /// "did you mean P:M:F:N?" with the description of which one field was misspelled; empty where no
  /// probe is near.
  std::string similar(const dif::ProbeDescription& pattern);
  std::int64_t process() override { return process_; }

 private:
  using Field = std::string dif::ProbeDescription::*;

  std::string where_else(const dif::ProbeDescription& pattern);
  void offer_fields(const dif::ProbeDescription& pattern, Field field, SimilarName& similar);
  static std::string similar_provider(const std::string& typed);
  std::string similar_function(const dif::ProbeDescription& pattern);
  std::string similar_module(const dif::ProbeDescription& pattern);
  std::string similar_name_of(const dif::ProbeDescription& pattern);
  d::ProbeSignature signature_of(const providers::Probe& probe);
  struct Known {
    d::ProbeSignature signature;
    std::optional<providers::Probe> first{};  // whose arguments nobody has asked for yet
  };
  Known& find(const dif::ProbeDescription& pattern);

  providers::Tracer* tracer_;
  std::int64_t process_;
  std::map<std::string, Known> signatures_;  // by pattern
};

}  // namespace ringside::cli
