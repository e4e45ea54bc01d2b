// The D compiler's entry point: compiles source text, with the probes, types and symbols around it,
// to a dif::Program. Grammar and semantics: the published Dynamic Tracing Guide, illumos's dialect.
// Touches no guest and no files.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dif/bind/kernel_names.h"
#include "dif/d/diagnostic.h"
#include "dif/program/program.h"
#include "vmm/base/address.h"
#include "vmm/base/c_type.h"
#include "vmm/base/result.h"

namespace ringside::d {

/// The probes that a description matches, and their arguments.
struct ProbeSignature {
  std::size_t matched = 0;
  bool is_everywhere = true;      // of several machines that the description is for, on each
  bool has_types = false;         // false: args[] cannot be used, arg0..9 can
  std::string why_no_types{};     // where there is a reason to tell
  std::vector<TypeId> arguments;  // of the first probe that matched
  std::vector<std::string> argument_names;
  dif::ProbeDescription first;         // that probe's full name
  dif::ProviderAttributes attributes;  // of that probe's provider
  /// args[] as a program sees it, if that differs from what the probe passes: args[n] is the
  /// argument `native` of `arguments`, translated to `type` ("bufinfo_t *", of a D library).
  struct Translated {
    std::string type;
    unsigned native = 0;
    bool operator==(const Translated&) const = default;
  };
  std::vector<Translated> translated;
};

using dif::KernelVariable;

/// The world around a program, as the session sees it. All answers may come from a hostile guest.
class Environment : public dif::KernelNames {
 public:
  virtual TypeGraph& types() = 0;
  const TypeGraph& kernel_types() override { return types(); }
  Argument argument(const dif::ProbeDescription& pattern, unsigned n) override {
    const ProbeSignature found = signature(pattern);
    Argument result{found.matched, std::nullopt};
    if (n < found.arguments.size()) result.type = found.arguments[n];
    return result;
  }
  /// For `#pragma D depends_on`, and to know which libraries can be used.
  virtual bool has_provider(std::string_view name) {
    (void)name;
    return false;
  }
  /// "6.1.0-56-cloud-amd64"; empty where there is no kernel.
  virtual std::string_view kernel_release() const { return {}; }
  /// How many indices regs[] and uregs[] have.
  virtual std::uint64_t register_indices() const { return 0; }
  virtual ProbeSignature signature(const dif::ProbeDescription& pattern) = 0;
  /// Visits each probe that matches with its arguments' types, as signature() has them of the
  /// first, until `visit` returns false.
  virtual void for_each_signature(const dif::ProbeDescription& pattern,
                                  const std::function<bool(const ProbeSignature&)>& visit) {
    const ProbeSignature all = signature(pattern);
    if (all.matched != 0) (void)visit(all);
  }
  /// The full name of the probe with this number; empty when there is none.
  virtual std::optional<dif::ProbeDescription> probe_by_id(dif::ProbeId id) {
    (void)id;
    return {};
  }
  /// The name of a kernel variable that is nearest to one that there is not; empty where none is
  /// near.
  virtual std::string similar_kernel_variable(std::string_view module, std::string_view name) {
    (void)module, (void)name;
    return {};
  }
  /// The reason why nothing matches, in words for the user; empty when there is none to tell.
  virtual std::string why_no_match(const dif::ProbeDescription& pattern) {
    (void)pattern;
    return {};
  }
};

/// A D library: parsed before the program, left out silently when what it depends on is not there.
struct LibrarySource {
  std::string name;  // "procfs.d", as `depends_on library` names it
  std::string text;
};

struct CompileOptions {
  std::string source_name;                     // for messages: "-n 'BEGIN...'" or a file name
  std::vector<std::string> macro_arguments;    // $0 is the script, $1...
  std::map<std::string, std::int64_t> macros;  // pid, target, uid, gid, ppid, ...
  bool target_differs = false;                 // $target is each machine's own, known to bind()
  bool default_arguments = false;              // -x defaultargs
  bool unused_arguments = false;               // -x argref: no D_MACRO_UNUSED
  bool allow_zero_matches = false;             // -Z
  bool allow_empty = false;                    // -x empty
  bool is_file = false;                        // -s: a description alone is no clause
  bool destructive = false;                    // -w
  std::uint32_t string_size = 256;
  std::vector<LibrarySource> libraries;                      // system libraries, then those of -L
  std::optional<dif::Attributes> attribute_minimum;          // -x amin: below it D_ATTR_MIN
  unsigned integer_registers = dif::kRegisters;              // -x iregs, including r0
  unsigned tuple_registers = dif::kTupleSlots;               // -x tregs
  std::uint32_t stack_frames = 20, user_stack_frames = 100;  // -x stackframes, ustackframes
  std::uint32_t java_stack_frames = 50;                      // -x jstackframes
  std::optional<std::array<unsigned, 3>> version;  // -x version=x.y.z: newer names are hidden
  bool list_desugared = false;                     // -d: fills Compiled::desugared
  /// Sets an option for `#pragma D option name=value`, as soon as it is read, and whatever of
  /// `options` depends on it. The error's message says why it cannot be. Null: nothing is set.
  std::function<Result<void>(std::string_view name, std::string_view value,
                             CompileOptions& options)>
      set_option;
  /// How -P -m -f -n -i place a bare description: the name's position when fields are missing.
  enum class Specifier { Name, Function, Module, Provider } specifier = Specifier::Name;
};

struct Compiled {
  dif::Program program;
  std::string desugared;  // its clauses as D, without if, else and loops
};

/// Compiles one program. The program refers to parts of the kernel by name (kernel_names), so it
/// runs on every kernel in which bind() (dif/bind/bind.h) finds them. Types without a name are its
/// `needs`.
Result<Compiled, Diagnostic> compile(std::string_view source, const CompileOptions& options,
                                     Environment& environment);

}  // namespace ringside::d
