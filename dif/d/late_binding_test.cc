// A program that was compiled against one kernel runs with another whose structures lie otherwise:
// compiled once, bound to each, fired on each one's memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "dif/bind/bind.h"
#include "dif/d/testing/program_runner.h"
#include "dif/dof/dof.h"

namespace ringside::d {
namespace {

constexpr std::uint64_t kBase = 0xffff'8880'0000'0000;
constexpr std::uint64_t kWorker = kBase + 0x100;  // a struct worker
constexpr std::uint64_t kDesk = kBase + 0x400;    // its struct desk
constexpr std::uint64_t kPool = kBase + 0x800;    // `pool: struct worker [3]

/// Where one kernel has what both have.
struct Layout {
  std::uint32_t worker_size = 64, age = 0, name = 8, name_length = 16, desk = 24, inner = 40;
  std::uint32_t flag = 32 * 8 + 3, level = 32 * 8 + 4, level_width = 5;  // bits
  std::uint32_t desk_size = 16, number = 0;
  std::int64_t busy = 2;
  std::uint64_t identifier = kPool;
  std::string_view number_type = "long";
  std::int64_t process = 42;
  bool has_age = true, has_busy = true, has_pool = true;
};
const Layout kOld;
const Layout kNew = [] {
  Layout made;
  made.worker_size = 128;
  made.age = 96;
  made.name = 16;
  made.name_length = 24;
  made.desk = 48;
  made.inner = 80;
  made.flag = 64 * 8 + 17;
  made.level = 64 * 8 + 21;
  made.level_width = 7;
  made.desk_size = 40;
  made.number = 32;
  made.process = 4;
  made.busy = 9;
  made.identifier = kPool + 0x40;
  return made;
}();

class Kernel final : public Environment {
 public:
  explicit Kernel(const Layout& layout) : layout_(layout), first_(types_.size()) {
    const auto type = [&](std::string_view name) { return types_.find(name).value_or(TypeId{}); };
    const Member desk[] = {{"number", type(layout.number_type), layout.number * 8, 0}};
    const TypeId desk_type = types_.add_struct(TypeKind::Struct, "desk", layout.desk_size, desk);
    types_.index(desk_type);
    const Member inner[] = {{"x", type("int"), 0, 0}, {"y", type("int"), 32, 0}};
    const TypeId inner_type = types_.add_struct(TypeKind::Struct, "", 8, inner);
    std::vector<Member> worker = {
        {"name", types_.array_of(type("char"), layout.name_length), layout.name * 8, 0},
        {"desk", types_.pointer_to(desk_type), layout.desk * 8, 0},
        {"inner", inner_type, layout.inner * 8, 0},
        {"flag", type("unsigned int"), layout.flag, 1},
        {"level", type("int"), layout.level, layout.level_width}};
    if (layout.has_age) worker.push_back({"age", type("int"), layout.age * 8, 0});
    worker_ = types_.add_struct(TypeKind::Struct, "worker", layout.worker_size, worker);
    types_.index(worker_);
    // With a flexible array alone, and with nothing: GNU C's sizes of both are 0.
    const Member tail[] = {{"args", types_.array_of(type("long"), 0), 0, 0}};
    types_.index(types_.add_struct(TypeKind::Struct, "raw_args", 0, tail));
    types_.index(types_.add_struct(TypeKind::Struct, "nothing", 0, {}));
    std::vector<Enumerator> states = {{"IDLE", 0}};
    if (layout.has_busy) states.push_back({"BUSY", layout.busy});
    types_.index(types_.add_enum("state", 4, true, states));
    pool_ = types_.array_of(worker_, 3);
    end_ = types_.size();
  }
  TypeGraph& types() override { return types_; }
  bool has_module(std::string_view name) override { return name == "vmlinux"; }
  std::string type_module(TypeId id) override {
    return id.value >= first_ && id.value < end_ ? "vmlinux" : "";
  }
  ProbeSignature signature(const dif::ProbeDescription& pattern) override {
    ProbeSignature result;
    result.first = {"fbt", "vmlinux", "work", "entry"};
    if (!dif::matches(pattern, result.first)) return result;
    result.matched = 1;
    result.has_types = true;
    result.arguments = {types_.pointer_to(worker_)};
    if (!layout_.has_age) result.arguments = {types_.find("long").value_or(TypeId{})};
    return result;
  }
  std::optional<KernelVariable> kernel_variable(std::string_view, std::string_view name) override {
    if (name != "pool" || !layout_.has_pool) return std::nullopt;
    return KernelVariable{"vmlinux", GuestVirt(layout_.identifier), pool_};
  }
  std::int64_t process() override { return layout_.process; }

 private:
  const Layout layout_;
  TypeGraph types_;
  std::size_t first_, end_ = 0;
  TypeId worker_, pool_;
};

/// A worker at arg0 with age 42, name "ada", desk 77, inner {5, 6}, flag 1, level -3; in `pool the
/// second one has age 7.
class Guest final : public dif::GuestContext {
 public:
  explicit Guest(const Layout& at) {
    memory_.bytes.resize(0x1000);
    put(kWorker + at.age, std::int32_t{42});
    std::memcpy(&memory_.bytes[kWorker - kBase + at.name], "ada", 4);
    put(kWorker + at.desk, kDesk);
    put(kWorker + at.inner, std::int32_t{5});
    put(kWorker + at.inner + 4, std::int32_t{6});
    const std::uint32_t unit = at.flag / 32 * 32;
    const std::uint32_t level = std::uint32_t(-3) & ((1U << at.level_width) - 1);
    put(kWorker + unit / 8, 1U << (at.flag - unit) | level << (at.level - unit));
    put(kDesk + at.number, std::int64_t{77});
    put(at.identifier + at.worker_size + at.age, std::int32_t{7});
  }
  Result<std::uint64_t, Fault> variable(dif::ContextVariable) const override { return 0; }
  Result<std::size_t, Fault> execname(std::span<char>) const override { return 0; }
  Result<std::uint64_t, Fault> argument(unsigned) const override { return kWorker; }
  const GuestReader& kernel() const override { return memory_; }
  const GuestReader& user() const override { return memory_; }

 private:
  struct Memory final : GuestReader {
    std::vector<std::byte> bytes;
    Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
      const std::uint64_t offset = at.raw() - kBase;
      if (offset > bytes.size() || out.size() > bytes.size() - offset) {
        return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
      }
      std::memcpy(out.data(), bytes.data() + offset, out.size());
      return {};
    }
  };
  template <class T>
  void put(std::uint64_t at, const T& value) {
    std::memcpy(&memory_.bytes[at - kBase], &value, sizeof value);
  }
  Memory memory_;
};

/// Compiled with the old kernel, and through a file.
dif::Program compiled(const std::string& body) {
  Kernel kernel(kOld);
  const auto program = compile("fbt::work:entry { " + body + " }", {}, kernel);
  EXPECT_TRUE(program) << program.error().text;
  const auto read = dif::read_dof(dif::write_dof(program->program));
  EXPECT_TRUE(read && *read == program->program);
  return *read;
}

std::string refusal(const dif::Program& program, const Layout& layout) {
  Kernel kernel(layout);
  const auto bound = dif::bind(program, kernel);
  return bound ? "" : bound.error().message;
}

/// The numbers that its first firing records, or the message of the error that refuses it.
std::string fired(const dif::Program& program, const Layout& layout) {
  Kernel kernel(layout);
  auto bound = dif::bind(program, kernel);
  if (!bound) return bound.error().message;
  auto verified = dif::verify_program(std::move(*bound));
  if (!verified) return verified.error().message;
  dif::Engine engine(std::move(*verified), {}, 1);
  engine.enable(0, dif::ProbeId{1}, {"fbt", "vmlinux", "work", "entry"});
  engine.fire(dif::ProbeId{1}, {0, 1000, 5}, Guest(layout));
  const dif::TraceData trace_data = engine.take_quiescent();
  std::string text;
  for (const dif::Record& record : trace_data.records) {
    for (const dif::RecordField& field : engine.ecb(record.ecb).fields) {
      std::int64_t value = 0;
      const auto size = std::min<std::size_t>(field.size, sizeof value);
      std::memcpy(&value, record.data.data() + field.offset, size);
      if (size == 4) value = static_cast<std::int32_t>(value);
      if (!text.empty()) text += ' ';
      text += field.size > 8 ? std::to_string(field.size) + " bytes" : std::to_string(value);
    }
  }
  if (!trace_data.faults.empty()) text += " fault";
  return text;
}

/// The results of the program on the kernel that it was compiled with, and on the other.
std::string both(const std::string& body) {
  const dif::Program program = compiled(body);
  return fired(program, kOld) + " / " + fired(program, kNew);
}

TEST(LateBinding, MembersAreFoundWhereEachKernelHasThem) {
  EXPECT_EQ(both("trace(args[0]->age);"), "42 / 42");
  EXPECT_EQ(both("trace(args[0]->desk->number);"), "77 / 77");
  EXPECT_EQ(both("trace(args[0]->inner.x); trace((&args[0]->inner)->y);"), "5 6 / 5 6");
  EXPECT_EQ(both("trace(args[0]->name[1]);"), "100 / 100");
  EXPECT_EQ(both("trace(strlen(args[0]->name));"), "3 / 3");
}

TEST(LateBinding, BitFieldsMoveAndGrow) {
  EXPECT_EQ(both("trace(args[0]->flag); trace(args[0]->level);"), "1 -3 / 1 -3");
}

TEST(LateBinding, SizesOffsetsAndEnumeratorsAreEachKernels) {
  EXPECT_EQ(both("trace(sizeof(struct worker)); trace(sizeof(struct worker) * 2 + 1);"),
            "64 129 / 128 257");
  EXPECT_EQ(both("trace(offsetof(struct worker, desk)); trace(sizeof(args[0]->name));"),
            "24 16 / 48 24");
  EXPECT_EQ(both("trace(sizeof(struct nothing)); trace(sizeof(struct raw_args)); "
                 "trace(offsetof(struct raw_args, args));"),
            "0 0 0 / 0 0 0");
  EXPECT_EQ(both("trace(BUSY); trace(BUSY == 2); trace(-BUSY); trace((int)BUSY + 1);"),
            "2 1 -2 3 / 9 0 -9 10");
  EXPECT_EQ(both("trace(IDLE == 0 ? 1 : 2);"), "1 / 1");
}

TEST(LateBinding, PointersStepByEachKernelsSize) {
  EXPECT_EQ(both("trace((uint64_t)(args[0] + 2) - (uint64_t)args[0]);"), "128 / 256");
  EXPECT_EQ(both("this->p = args[0]; this->p++; trace(this->p - args[0]);"), "1 / 1");
  EXPECT_EQ(both("trace(`pool[1].age);"), "7 / 7");
  EXPECT_EQ(both("trace((uint64_t)&`pool[0]);"), std::to_string(std::int64_t(kPool)) + " / " +
                                                     std::to_string(std::int64_t(kPool + 0x40)));
}

TEST(LateBinding, StructuresByValueHaveEachKernelsSize) {
  EXPECT_EQ(both("trace(*args[0]);"), "64 bytes / 128 bytes");
  EXPECT_EQ(both("this->w = *args[0]; trace(this->w.age); trace(this->w.desk->number);"),
            "42 77 / 42 77");
  EXPECT_EQ(both("self->w = *args[0]; self->w.age = 9; trace(self->w.age + args[0]->age);"),
            "51 / 51");
  EXPECT_EQ(both("trace(args[0]->name);"), "16 bytes / 24 bytes");
}

TEST(LateBinding, PrintedTypesAreEachKernels) {
  const dif::Program program = compiled("print(*args[0]);");
  Kernel kernel(kNew);
  const auto bound = dif::bind(program, kernel);
  ASSERT_TRUE(bound) << bound.error().message;
  const dif::TypeShape& shape = bound->shapes[bound->clauses[0].actions[0].shapes[0]];
  EXPECT_EQ(shape.name, "struct worker");
  EXPECT_EQ(shape.size, 128u);
  const auto age = std::ranges::find(shape.members, "age", &dif::TypeShape::Member::name);
  ASSERT_NE(age, shape.members.end());
  EXPECT_EQ(age->bit_offset, 96u * 8);
  EXPECT_EQ(bound->clauses[0].actions[0].arguments[0].result.size, 128u);
  EXPECT_EQ(fired(program, kNew), "128 bytes");
}

TEST(LateBinding, TheSameKernelGivesTheSameProgram) {
  const dif::Program program = compiled("trace(args[0]->age); print(*args[0]); trace(BUSY);");
  Kernel kernel(kOld);
  const auto bound = dif::bind(program, kernel);
  ASSERT_TRUE(bound);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bound->clauses[0].actions[i].arguments[0].integers,
              program.clauses[0].actions[i].arguments[0].integers);
    EXPECT_TRUE(bound->clauses[0].actions[i].arguments[0].relocations.empty());
  }
  EXPECT_TRUE(bound->kernel_names.empty());
}

TEST(LateBinding, WhatAKernelLacksIsNamed) {
  Layout poor = kNew;
  poor.has_age = poor.has_busy = poor.has_pool = false;
  EXPECT_EQ(refusal(compiled("trace(((struct worker *)arg0)->age);"), poor),
            "line 1: struct worker has no member age in this kernel");
  EXPECT_EQ(refusal(compiled("trace(BUSY);"), poor), "line 1: this kernel has no enumerator BUSY");
  EXPECT_EQ(refusal(compiled("trace((uint64_t)&`pool);"), poor),
            "line 1: this kernel has no symbol vmlinux`pool");
  EXPECT_EQ(refusal(compiled("trace((uint64_t)args[0]);"), poor),
            "line 1: args[0] of fbt::work:entry is long here and struct worker * where the program "
            "was compiled: compile it again here");
  EXPECT_EQ(refusal(compiled("trace(args[0]->desk->number); \n trace(arg0);"),
                    [] {
                      Layout made = kNew;
                      made.number_type = "int";
                      return made;
                    }()),
            "line 1: member number of struct desk is int here and long where the program was "
            "compiled: compile it again here");
}

TEST(LateBinding, WhatTheCodeDependsOnIsRefusedWhereItDiffers) {
  EXPECT_EQ(refusal(compiled("tracemem(arg0, sizeof(struct worker));"), kNew),
            "line 1: struct worker: its size is 128 here and 64 where the program was compiled, "
            "and the code depends on that: compile it again here");
  EXPECT_EQ(refusal(compiled("tracemem(arg0, sizeof(struct worker));"), kOld), "");
  EXPECT_NE(refusal(compiled("this->w = *args[0]; this->w.flag = 1;"), kNew)
                .find("member flag of struct worker: its value is 529 here and 259"),
            std::string::npos);
}

TEST(LateBinding, ElementsThatAreNotThereAreRefused) {
  Layout brief = kNew;
  brief.name_length = 4;
  EXPECT_EQ(refusal(compiled("trace(args[0]->name[1] + args[0]->name[3]);"), brief), "");
  EXPECT_EQ(
      refusal(compiled("trace(args[0]->name[1] + args[0]->name[9]);"), brief),
      "line 1: member name of struct worker has 4 elements in this kernel, and the code takes "
      "number 9");
}

/// An anonymous structure that a variable of D's points at: nothing leads to it by name.
TEST(LateBinding, WhatHasNoNameNeedsTheSameTypes) {
  const dif::Program program = compiled("this->p = &args[0]->inner; trace(this->p->y);");
  ASSERT_EQ(program.needs.size(), 1u);
  EXPECT_EQ(program.needs[0].module, "vmlinux");
  EXPECT_NE(program.needs[0].type.find("struct"), std::string::npos);
  EXPECT_EQ(fired(program, kOld), "6");
  EXPECT_TRUE(compiled("trace((&args[0]->inner)->y);").needs.empty());
}

TEST(LateBinding, AFieldThatNoUnitHoldsIsRefused) {
  Layout packed = kNew;
  packed.level = 64 * 8 + 29;
  EXPECT_EQ(refusal(compiled("trace(args[0]->level);"), packed),
            "line 1: no 4 aligned bytes hold member level of struct worker in this kernel: compile "
            "the program again here");
}

dif::Program compiled_whole(std::string_view text) {
  Kernel kernel(kOld);
  auto program = compile(text, {}, kernel);
  EXPECT_TRUE(program) << program.error().text;
  return program ? std::move(program->program) : dif::Program();
}

std::string refusal_on(std::string_view machine, const dif::Program& program) {
  Layout poor = kNew;
  poor.has_age = poor.has_busy = false;
  Kernel kernel(poor);
  const auto bound = dif::bind(program, kernel, machine);
  return bound ? "" : bound.error().message;
}

TEST(LateBinding, AMachineNeedsWhatItsOwnClausesName) {
  const dif::Program program = compiled_whole(
      "old:fbt::work:entry { trace(((struct worker *)arg0)->age); }\n"
      "old:fbt::work:entry, n*:fbt::work:entry { print(*(struct desk *)arg0); }");
  Kernel kernel(kNew);

  EXPECT_EQ(refusal_on("new", program), "");
  EXPECT_EQ(refusal_on("old", program), "line 1: struct worker has no member age in this kernel");
  const auto bound = dif::bind(program, kernel, "new");
  ASSERT_TRUE(bound);
  EXPECT_TRUE(bound->clauses[0].probes.empty());
  EXPECT_TRUE(bound->clauses[0].actions.empty());
  ASSERT_EQ(bound->clauses[1].probes.size(), 1u);
  EXPECT_EQ(bound->clauses[1].probes[0].machine, "n*");
  EXPECT_EQ(bound->shapes[bound->clauses[1].actions[0].shapes[0]].size, 40u);
  EXPECT_TRUE(dif::verify_program(*bound));
}

/// Which clause names a thing first does not matter.
TEST(LateBinding, WhatTwoClausesNameIsNeededByBoth) {
  const dif::Program program = compiled_whole(
      "old:fbt::work:entry { trace(BUSY); print(*(struct worker *)arg0); }\n"
      "new:fbt::work:entry { print(*(struct worker *)arg0); trace(BUSY); }");

  EXPECT_EQ(refusal_on("new", program), "line 1: this kernel has no enumerator BUSY");
  EXPECT_EQ(refusal_on("third", program), "");
}

TEST(LateBinding, WhatDeclarationsNeedAllMachinesNeed) {
  const dif::Program program = compiled_whole(
      "struct mine { struct desk d; int x; };\n"
      "old:fbt::work:entry { trace(((struct mine *)arg0)->x); }");

  EXPECT_EQ(refusal_on("new", program),
            "line 1: struct desk: its size is 40 here and 16 where the program was compiled, and "
            "the code depends on that: compile it again here");
}

/// A file that lists no name for its clause is not believed.
TEST(LateBinding, ANameThatNoClauseOfTheMachineListsHasNoValue) {
  dif::Program program =
      compiled_whole("old:fbt::work:entry { trace(BUSY); } new:fbt::work:entry { trace(BUSY); }");
  program.clauses[1].names.clear();

  EXPECT_NE(refusal_on("new", program).find("which is not there"), std::string::npos);
}

std::string fired_with_target(const std::string& body, const Layout& layout) {
  CompileOptions options;
  options.macros["target"] = kOld.process;
  options.target_differs = true;
  Kernel kernel(kOld);
  const auto program = compile("fbt::work:entry { " + body + " }", options, kernel);
  return program ? fired(program->program, layout) : std::string(program.error().tag);
}

TEST(LateBinding, TheTargetIsEachMachinesOwn) {
  for (const Layout& layout : {kOld, kNew}) {
    const std::string own = std::to_string(layout.process);
    EXPECT_EQ(fired_with_target("trace($target); trace(-$target);", layout), own + " -" + own);
    EXPECT_EQ(fired_with_target("trace($target == 42);", layout), layout.process == 42 ? "1" : "0");
  }
  EXPECT_EQ(fired_with_target("trace($$target);", kOld), "D_MACRO_UNDEF");
  EXPECT_EQ(fired_with_target("tracemem(arg0, $target);", kNew),
            "line 1: $target: its value is 4 here and 42 where the program was compiled, and the "
            "code depends on that: compile it again here");
}

TEST(LateBinding, NothingUnboundIsVerified) {
  const auto verified = dif::verify_program(compiled("trace(args[0]->age);"));
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().message, "the program is not bound to a kernel");
}

TEST(LateBinding, DamageIsRefusedOrHarmless) {
  std::mt19937_64 random(20'261'122);
  const auto bytes = dif::write_dof(compiled(
      "this->w = *args[0]; print(*args[0]); trace(args[0]->level + BUSY * sizeof(struct desk));"
      " trace(`pool[1].age);"));
  Kernel kernel(kNew);
  std::size_t bound_ones = 0, verified_ones = 0;
  for (int round = 0; round < 4000; ++round) {
    auto damaged = bytes;
    for (int change = 0; change < 2; ++change) {
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    }
    const auto read = dif::read_dof(damaged);
    if (!read) continue;
    auto bound = dif::bind(*read, kernel);
    if (!bound) {
      EXPECT_FALSE(bound.error().message.empty());
      continue;
    }
    ++bound_ones;
    EXPECT_TRUE(bound->kernel_names.empty());
    if (dif::verify_program(std::move(*bound))) ++verified_ones;
  }
  EXPECT_GT(bound_ones, 100u);
  EXPECT_GT(verified_ones, 100u);
}

TEST(LateBinding, TablesThatMakeNoSenseAreRefused) {
  const dif::Program good = compiled("print(*args[0]); trace(args[0]->desk->number);");
  const auto damaged = [&](const std::function<void(dif::Program&)>& damage) {
    dif::Program program = good;
    damage(program);
    const std::string why = refusal(program, kOld);
    return why.empty() ? fired(program, kOld) : why;
  };
  const auto relocations = [](dif::Program & p, std::size_t action) -> auto& {
    return p.clauses[0].actions[action].arguments[0].relocations;
  };
  EXPECT_EQ(damaged([&](auto& p) { relocations(p, 1)[0].index = 1000; }),
            "a relocation is of integer 1000, name 1, which is not there");
  EXPECT_EQ(damaged([&](auto& p) { relocations(p, 1)[0].name = 77; }),
            "a relocation is of integer 0, name 77, which is not there");
  EXPECT_EQ(
      damaged([&](auto& p) { relocations(p, 0)[0].place = dif::Relocation::Place::Variable; }),
      "a relocation is of variable 0, name 0, which is not there");
  EXPECT_EQ(damaged([&](auto& p) { p.kernel_names[0].name += '\n'; }),
            "a name of the kernel is no such name");
  EXPECT_EQ(damaged([&](auto& p) { p.kernel_names[0].path.assign(2000, '.'); }),
            "a name of the kernel is no such name");
  EXPECT_EQ(damaged([&](auto& p) { p.kernel_names.resize(dif::kMostKernelNames + 1); }),
            "there are more than 16384 names of the kernel");
  EXPECT_EQ(damaged([&](auto& p) { p.kernel_names[0].path = "*.*.*"; }),
            "line 1: struct worker has no member *.*.* in this kernel");
  EXPECT_EQ(damaged([&](auto& p) {
              for (auto& shape : p.shapes) {
                if (shape.kernel_name) shape.kernel_name = 99;
              }
            }).find("has no such name of the kernel: 99") != std::string::npos,
            true);
}

}  // namespace
}  // namespace ringside::d
