// A provider that promises args[] translated (psinfo_t *), as D's proc and sched do, from its
// promise to the value in a record: compiled with our own libraries, bound by a plan, fired through
// the dispatcher over a guest's memory.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cli/program/environment.h"
#include "cli/program/fake_tracer_for_tests.h"
#include "cli/program/probe_list.h"
#include "dif/bind/bind.h"
#include "dif/engine/engine.h"
#include "dif/verify/verify.h"
#include "providers/dispatch/dispatch.h"
#include "providers/dispatch/engine_sink.h"
#include "providers/testing/fake_guest.h"

namespace ringside::cli {
namespace {

using namespace providers;

constexpr GuestVirt kPlace{0xffff'ffff'8100'0000};
constexpr dif::ProbeId kCreate{1};

/// proc:::create as the published documentation has it: args[0] is the new process. The function
/// that it stands in is given the task on the stack, as argument 2 of the probe.
class ProcProvider final : public Provider {
 public:
  ProcProvider(TypeGraph& types, ProbePoints& points)
      : Provider("proc", {}), types_(types), points_(points) {
    set_first_id(kCreate.value);
    plan_.arguments[2] = ArgumentSource::word(&Registers::rsp, 8);
  }
  std::uint32_t id_count() const override { return 1; }
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override {
    if (dif::matches(pattern, create().name)) visit(create());
    return {};
  }
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override {
    return id == kCreate ? std::optional(create()) : std::nullopt;
  }
  ProbeArguments arguments(const Probe&) override {
    const TypeId task = types_.pointer_to(*types_.find(TypeKind::Struct, "task_struct"));
    const TypeId number = *types_.find("int");
    return {.known = true,
            .types = {number, number, task},
            .names = {"flags", "node", "task"},
            .translated = {{"psinfo_t *", 2}, {"int", 0}}};
  }
  Result<void> enable(const Probe& probe) override {
    Binding binding;
    binding.probe = probe.id;
    binding.plan = &plan_;
    return points_.bind(TRY(points_.examine(kPlace, SitePolicy::Normal)), binding);
  }
  bool is_enabled(dif::ProbeId) const override { return false; }
  void note_disabled(dif::ProbeId) override {}

 private:
  static Probe create() { return {kCreate, {"proc", "", "", "create"}}; }

  TypeGraph& types_;
  ProbePoints& points_;
  ArgumentPlan plan_;
};

class OnePoint final : public ProbePoints {
 public:
  Result<ProbeSite> examine(GuestVirt at, SitePolicy policy) override {
    constexpr std::array kNop{std::byte{0x90}};
    return proven(at, kNop, policy);
  }
  Result<void> bind(const ProbeSite& site, const Binding& binding) override {
    bound.push_back({site.address(), binding});
    return {};
  }

  std::vector<DispatchTable::EnabledBinding> bound;
};

class ProcTracer final : public FakeTracer {
 public:
  explicit ProcTracer(Provider& provider) : provider_(provider) { add({"proc", "", "", "create"}); }
  ProbeArguments arguments(const Probe& probe) override { return provider_.arguments(probe); }
  Result<void> enable(const Probe& probe) override { return provider_.enable(probe); }

 private:
  Provider& provider_;
};

std::string library_text(const std::string& name) {
  std::ifstream file(std::string(SOURCE_ROOT) + "/dif/d/library/" + name);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// psinfo_t of the fake kernel's task_struct, which has less than Linux's.
constexpr const char* kTranslator =
    "#pragma D depends_on library procfs.d\n"
    "#pragma D depends_on provider proc\n"
    "translator psinfo_t < struct task_struct *T > {\n"
    "  pr_pid = T->tgid; pr_ppid = T->real_parent->tgid; pr_fname = stringof(T->comm);\n"
    "};\n";

class TranslatedArguments : public ::testing::Test {
 protected:
  TranslatedArguments() {
    FakeKernel::write_task(memory_);
    TypeGraph& types = kernel_.own_types();
    const TypeId number = *types.find("int");
    const Member of_parent[] = {{"tgid", number, 20 * 8, 0}};
    const TypeId parent = types.add_struct(TypeKind::Struct, "parent_task", 64, of_parent);
    const Member members[] = {{"comm", types.array_of(*types.find("char"), 16), 0, 0},
                              {"pid", number, 16 * 8, 0},
                              {"tgid", number, 20 * 8, 0},
                              {"real_parent", types.pointer_to(parent), 24 * 8, 0}};
    const TypeId task = types.add_struct(TypeKind::Struct, "task_struct", 64, members);
    types.index(task);
    options_.libraries = {{"procfs.d", library_text("procfs.d")}, {"proc_test.d", kTranslator}};
  }
  auto compile(std::string_view source) { return d::compile(source, options_, environment_); }
  std::string_view tag(std::string_view source) {
    const auto program = compile(source);
    return program ? "(none)" : program.error().tag;
  }
  /// The fields that one firing of the program records, and the number of its faults. The task lies
  /// at rsp + 8.
  struct Fired {
    std::vector<std::string> fields;
    std::size_t faults = 0;
  };
  Fired fire(std::string_view source, std::uint64_t rsp = kKernelBase + kStack) {
    auto compiled = compile(source);
    if (!compiled) {
      ADD_FAILURE() << compiled.error().text;
      return {};
    }
    auto program = dif::bind(compiled->program, environment_);
    if (!program) {
      ADD_FAILURE() << program.error().message;
      return {};
    }
    dif::Engine engine(*dif::verify_program(std::move(*program)), {}, 2);
    engine.enable(0, kCreate, {"proc", "", "", "create"});
    EXPECT_TRUE(tracer_.enable(tracer_.probes[0]));
    EngineSink sink(engine, 2);
    TrapDispatcher dispatcher(kernel_, contexts_, sink, clock_,
                              {.added = std::exchange(points_.bound, {})});
    dispatcher.open();
    vmm::Trap trap;
    trap.address = kPlace;
    trap.percpu_base = kernel_address(kPercpu0);
    trap.registers.cr3 = kRoot;
    trap.registers.rsp = rsp;
    dispatcher.on_trap(trap);
    return read(engine);
  }
  static Fired read(dif::Engine& engine) {
    const dif::TraceData trace_data = engine.take_quiescent();
    Fired fired{{}, trace_data.faults.size()};
    for (const dif::Record& record : trace_data.records) {
      for (const dif::RecordField& field : engine.ecb(record.ecb).fields) {
        const auto bytes = record.data.subspan(field.offset, field.size);
        std::int32_t number = 0;
        std::memcpy(&number, bytes.data(), std::min(sizeof number, bytes.size()));
        // SAFETY: characters may alias any bytes; the engine ends every string with a NUL.
        const auto* text = reinterpret_cast<const char*>(bytes.data());
        const bool is_text = field.type.kind == dif::ValueKind::String;
        fired.fields.push_back(is_text ? text : std::to_string(number));
      }
    }
    return fired;
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  OnePoint points_;
  ProcProvider provider_{kernel_.own_types(), points_};
  ProcTracer tracer_{provider_};
  TracerEnvironment environment_{tracer_, &kernel_};
  LinuxContexts contexts_{2, memory_.memory(), kernel_};
  GuestClock clock_{TickRate(1'000'000'000)};
  d::CompileOptions options_;
};

TEST_F(TranslatedArguments, AreWhatTheLibrariesTranslatorMakesOfTheNativeArgument) {
  memory_.put64(kStack + 8, kKernelBase + kTask);

  const Fired fired = fire(
      "proc:::create { trace(args[0]->pr_pid); trace(args[0]->pr_ppid);"
      " trace(args[0]->pr_fname); trace(arg2 == (uint64_t)curthread); }");

  EXPECT_EQ(fired.fields, (std::vector<std::string>{"100", "1", "workload", "1"}));
  EXPECT_EQ(fired.faults, 0u);
}

TEST_F(TranslatedArguments, AHostileNativeArgumentIsAFault) {
  memory_.put64(kStack + 8, 0x4d00'0000'0000'0000);
  EXPECT_EQ(fire("proc:::create { trace(args[0]->pr_pid); }").faults, 1u);
}

TEST_F(TranslatedArguments, AStackThatIsNotMappedIsAFault) {
  EXPECT_EQ(fire("proc:::create { trace(args[0]->pr_pid); }", kKernelBase + kGuestBytes).faults,
            1u);
}

TEST_F(TranslatedArguments, AreChecked) {
  EXPECT_EQ(tag("proc:::create { trace(args[0]->tgid); }"), "D_XLATE_NOCONV");
  EXPECT_EQ(tag("proc:::create { trace(args[2]->pr_pid); }"), "D_ARGS_IDX");
}

TEST_F(TranslatedArguments, WithoutTheirTranslatorAreAnError) {
  options_.libraries.pop_back();

  EXPECT_EQ(tag("proc:::create { trace(args[0]->pr_pid); }"), "D_ARGS_XLATOR");
}

TEST_F(TranslatedArguments, AreListedAsTheyArePromised) {
  const std::string text = probe_list_details(
      {"proc", "", "", "create"}, {}, provider_.arguments(tracer_.probes[0]), kernel_.types());

  EXPECT_NE(text.find("\t\targs[0]: psinfo_t *task\n\t\targs[1]: int flags\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("args[2]"), std::string::npos) << text;
}

}  // namespace
}  // namespace ringside::cli
