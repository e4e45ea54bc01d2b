// Probes that D libraries define: what is read of a definition, what is refused and where the
// message points, and what is compiled of it.
#include "dif/d/probe_definitions.h"

#include <gtest/gtest.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

using dif::ProbeDefinition;
using dif::ProbePlace;

Result<std::vector<ProbeDefinition>, Diagnostic> read(const std::string& text) {
  FakeKernel kernel;
  return read_probe_definitions(
      {{"types.d", "typedef struct info { int x; } psinfo_t, lwpsinfo_t;"}, {"lib/own.d", text}},
      kernel);
}

/// Of the only probe of provider p.
ProbeDefinition definition(const std::string& probe) {
  auto all = read("provider p {\n\tprobe " + probe + ";\n};\n");
  EXPECT_TRUE(all) << all.error().text;
  if (!all || all->size() != 1) return {};
  return all->front();
}

std::string refusal(const std::string& probe) {
  const auto all = read("provider p {\n\tprobe " + probe + ";\n};\n");
  return all ? "" : render(all.error(), true);
}

TEST(ProbeDefinitions, WordsOfTheProviderHoldForAllThatHaveAPlace) {
  const auto all = read(
      "provider p { probe a() = fbt::f:entry { self->t = arg0; } -> fbt::f:return never_in \"g*\"; "
      "probe b() = "
      "sdt:::t; probe c() absent \"no\"; } never_in \"f*\", \"h*\" only_on \"PREEMPT_RT\";");

  ASSERT_TRUE(all) << all.error().text;
  EXPECT_EQ((*all)[0].place.never_in, (std::vector<std::string>{"f", "h", "g"}));
  EXPECT_EQ((*all)[0].beginning->place.never_in, (*all)[0].place.never_in);
  EXPECT_EQ((*all)[1].place.never_in, (std::vector<std::string>{"f", "h"}));
  EXPECT_EQ((*all)[1].kernels, ProbeDefinition::Kernels::RealTime);
  EXPECT_EQ((*all)[2].place.kind, ProbePlace::Kind::Nowhere);
  EXPECT_FALSE(read("provider p { probe a() = sdt:::t; } absent \"no\";"));
}

std::string marker(std::size_t n) {
  return ProbeDefinition::marker(n);
}

TEST(ProbeDefinitions, HaveAPlaceAConditionAndArguments) {
  const ProbeDefinition probe = definition(
      "lwp__create(struct task_struct *task, int pid) : (psinfo_t *task, int pid, lwpsinfo_t "
      "*task)\n"
      "\t    = fbt::fork:entry /pid > 1/ { task = args[0]; pid = task->pid; }");

  EXPECT_EQ(probe.provider, "p");
  EXPECT_EQ(probe.name, "lwp-create");
  EXPECT_EQ(probe.line, 2);
  EXPECT_EQ(probe.place, (ProbePlace{.kind = ProbePlace::Kind::Entry, .name = "fork"}));
  EXPECT_EQ(probe.condition, (dif::DefinitionText{marker(1) + " > 1", 3}));
  ASSERT_EQ(probe.values.size(), 2u);
  EXPECT_EQ(probe.values[0],
            (ProbeDefinition::Value{"task", "struct task_struct *", {{"args[0]", 3}}}));
  EXPECT_EQ(probe.values[1].choices[0].text, marker(0) + "->pid");
  ASSERT_EQ(probe.arguments.size(), 2u);
  EXPECT_EQ(probe.arguments[1], (ProbeDefinition::Argument{"pid", "int", 1}));
  ASSERT_EQ(probe.translated.size(), 3u);
  EXPECT_EQ(probe.translated[2], (ProbeDefinition::Translated{"lwpsinfo_t *", 0}));
  EXPECT_EQ(definition("bare() = sdt:::sched_switch").place.kind, ProbePlace::Kind::Tracepoint);
}

TEST(ProbeDefinitions, ChooseAmongPlacesAndValues) {
  const ProbeDefinition probe = definition(
      "tick(int state) = fbt::tick:entry | fbt::old_tick:entry"
      " { this->t = args[1]; state = this->t->a; state = this->t->b; }");

  EXPECT_EQ(probe.place.name, "tick|old_tick");
  ASSERT_EQ(probe.values.size(), 2u);
  EXPECT_EQ(probe.values[0].type, "");
  ASSERT_EQ(probe.values[1].choices.size(), 2u);
  EXPECT_EQ(probe.values[1].choices[1].text, marker(0) + "->b");
  EXPECT_EQ(definition("c() = counter:::x.y[A] | counter:::x.y[B]").place.name, "x.y[A|B]");
}

TEST(ProbeDefinitions, RememberFromACallsEntryToItsReturn) {
  const ProbeDefinition probe = definition(
      "done(int x, int ns) = fbt::f:entry /arg1 == 2/ { self->x = arg0; self->from = timestamp; }"
      " -> fbt::f:return /(int)arg1 == 0/ { x = self->x; ns = timestamp - self->from; }");

  EXPECT_EQ(probe.place.kind, ProbePlace::Kind::OwnReturn);
  ASSERT_TRUE(probe.beginning);
  EXPECT_EQ(probe.beginning->place.kind, ProbePlace::Kind::Entry);
  EXPECT_EQ(probe.beginning->condition.text, "arg1 == 2");
  EXPECT_FALSE(probe.beginning->key);
  ASSERT_EQ(probe.beginning->remembered.size(), 2u);
  EXPECT_EQ(probe.values[0].choices[0].text, "arg2");
  EXPECT_EQ(probe.values[1].choices[0].text, "timestamp - arg3");
}

TEST(ProbeDefinitions, StandInProcesses) {
  const ProbeDefinition call = definition(
      "read(long at, int n) = pid*:libssl.so*:SSL_read:entry { self->at = arg1; }"
      " -> pid*:libssl.so*:SSL_read:return /(int)arg1 > 0/ { at = self->at; n = arg1; }");

  EXPECT_EQ(call.place.kind, ProbePlace::Kind::UserReturn);
  EXPECT_EQ(call.place.module, "libssl.so*");
  EXPECT_EQ(call.place.name, "SSL_read");
  EXPECT_TRUE(call.place.needs_result);
  EXPECT_EQ(call.beginning->place.kind, ProbePlace::Kind::UserEntry);
  EXPECT_FALSE(call.counts_last_beginning());
  EXPECT_EQ(call.values[0].choices[0].text, "arg2");

  const ProbeDefinition block = definition(
      "block(long m) = pid*:libc.so.6:lock:entry { self->m = arg0; }"
      " -> fbt::wait:entry /arg0 == self->m/ { m = self->m; }");
  EXPECT_EQ(block.place.kind, ProbePlace::Kind::Entry);
  EXPECT_TRUE(block.counts_last_beginning());
  EXPECT_TRUE(block.is_of_processes());
  EXPECT_EQ(block.condition.text, "arg0 == arg7");
}

TEST(ProbeDefinitions, RememberByTaskAndObject) {
  const ProbeDefinition probe = definition(
      "wait(int ns) = sdt:::begin { self->from[args[0]] = timestamp; self->hard[args[0]] |= arg1; }"
      " -> sdt:::end /self->hard[arg3] == 0/ { ns = timestamp - self->from[arg3]; }"
      " never_in \"queued_*\", \"down_*\" never_called_by \"up_*\" only_on \"PREEMPT_RT\"");

  ASSERT_TRUE(probe.beginning);
  EXPECT_EQ(probe.beginning->key->text, "args[0]");
  EXPECT_EQ(probe.beginning->key_at_end->text, "arg3");
  EXPECT_FALSE(probe.beginning->remembered[0].adds);
  EXPECT_TRUE(probe.beginning->remembered[1].adds);
  EXPECT_EQ(probe.condition.text, "arg8 == 0");
  EXPECT_EQ(probe.place.never_in, (std::vector<std::string>{"queued_", "down_"}));
  EXPECT_EQ(probe.beginning->place.never_called_by, std::vector<std::string>{"up_"});
  EXPECT_EQ(probe.kernels, ProbeDefinition::Kernels::RealTime);
}

TEST(ProbeDefinitions, NamesOfArgumentsHideTypes) {
  const ProbeDefinition probe = definition(
      "a(int psinfo_t, struct task_struct *lwpsinfo_t) : (int psinfo_t)"
      " = fbt::f:entry /psinfo_t != 0/ { psinfo_t = arg0; lwpsinfo_t = args[1]; }");

  EXPECT_EQ(probe.condition.text, marker(0) + " != 0");
  ASSERT_EQ(probe.arguments.size(), 2u);
  EXPECT_EQ(probe.arguments[1].name, "lwpsinfo_t");
}

TEST(ProbeDefinitions, KnowWhetherTheResultIsUsed) {
  EXPECT_FALSE(definition("a() = fbt::f:return").place.needs_result);
  EXPECT_TRUE(definition("a(int e) = fbt::f:return { e = -arg1; }").place.needs_result);
  EXPECT_TRUE(definition("a() = fbt::f:return /args[1] == 0/").place.needs_result);
}

TEST(ProbeDefinitions, SayThatThereIsNoSuchPlace) {
  const ProbeDefinition probe = definition("caps() absent \"Linux has none; nearest: x:::y\"");

  EXPECT_EQ(probe.place.kind, ProbePlace::Kind::Nowhere);
  EXPECT_EQ(probe.place.name, "Linux has none; nearest: x:::y");
}

TEST(ProbeDefinitions, AreRefusedWithThePlaceInTheLibrary) {
  EXPECT_EQ(
      refusal("a() = fbt::f:middle"),
      "[D_PROV_PLACE] \"lib/own.d\", line 2: a probe cannot stand on fbt::f:middle: a place is "
      "fbt::FUNCTION:entry, fbt::FUNCTION:return, sdt:::TRACEPOINT, "
      "counter:::COUNTER[INDEX] or pid*:FILE:FUNCTION:entry or return\n"
      "\tprobe a() = fbt::f:middle;\n"
      "\t            ^ column 14");
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"a(int x) = fbt::f:entry", "argument x of probe a has no value"},
      {"a() = fbt::f:entry { y = 1; }", "y is no argument of probe a"},
      {"a() = fbt::f:entry { trace(1); }", "a place gives the probe's arguments"},
      {"a(int) = fbt::f:entry", "an argument of the probe has no name"},
      {"a(int x, long x) = fbt::f:entry { x = 1; }", "two arguments of the probe are x"},
      {"a(int x) : (int y) = fbt::f:entry { x = 1; }", "args[] are made of the probe's arguments"},
      {"a() = fbt::f:entry | fbt::f:return", "alternatives are functions"},
      {"a(int x) = fbt::f:entry { x = self->y; }", "nothing was remembered"},
      {"a() = fbt::f:entry { } -> fbt::f:return", "a beginning remembers values"},
      {"a() = sdt:::f { self->w[arg0] = self->x[arg0] = self->y[arg0] = 1; self->x[arg0] = 1; "
       "self->y[arg0] = 1; self->z[arg0] = 1; } -> sdt:::g",
       "a beginning remembers at most 3 values here"},
      {"a() = fbt::f:entry { x = 1; } -> fbt::f:return", "a beginning remembers values"},
      {"a() = fbt::f:entry { self->x = 1; } -> fbt::g:return", "the entry and the return of one"},
      {"a() = fbt::f:entry { self->x[arg0] = 1; } -> fbt::g:entry", "has to name the object"},
      {"a(int x) = sdt:::f { self->x[arg0] = 1; } -> sdt:::g { x = self->x; }",
       "self->x was not remembered so"},
      {"a() = sdt:::f { self->x[arg0] = 1; self->y[arg1] = 1; } -> sdt:::g", "to one object"},
      {"a() = fbt::f:entry { } sometimes \"x\"", "sometimes \"x\" says nothing of a probe"},
      {"a() = fbt::f:entry { } never_in \"f\"", "names of functions end with *"},
      {"a() = fbt::f:entry { } absent \"no\"", "probe a has a place, and is absent"},
      {"a() never_in \"f*\"", "probe a has no place"},
      {"a() = pid*::f:entry", "a probe cannot stand on"},
      {"a() = pid12:libc.so.6:f:entry", "a probe cannot stand on"},
      {"a() = pid*:libc.so.6:f*:entry", "a probe cannot stand on"},
      {"a() = pid*:l:f:entry | pid*:l:g:entry", "alternatives are functions"},
      {"a() = pid*:l:f:entry { self->x = 1; } -> pid*:l:g:return", "an end in a process is"},
      {"a() = fbt::f:entry { self->x[arg0] = 1; } -> pid*:l:g:entry /self->x[arg0]/",
       "an end in a process is"},
      {"a() = fbt::f:entry; probe b() = pid*:l:f:entry", "provider p has probes of the kernel"},
  };
  for (const auto& [probe, why] : kCases) {
    EXPECT_NE(refusal(std::string(probe)).find(why), std::string::npos)
        << probe << '\n'
        << refusal(std::string(probe));
  }
}

TEST(ProbeDefinitions, OfAProviderThatNoLibraryHasAreRefused) {
  const auto all = read("provider dtrace {\n\tprobe BEGIN() = fbt::f:entry;\n};\n");

  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().text, "libraries cannot add probes to the provider dtrace");
  EXPECT_EQ(all.error().at.line, 2);
}

TEST(ProbeDefinitions, OfProcessesLeaveRoomForANumber) {
  const auto all = read("provider my7 { probe a() = pid*:l:f:entry; };");
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().text.find("ends with a digit"), std::string::npos) << all.error().text;
}

TEST(ProbeDefinitions, AreForLibrariesAlone) {
  EXPECT_TRUE(error_of("provider p { probe a() = fbt::f:entry; }; BEGIN { }")
                  .starts_with("[D_PROV_PLACE] line 1: only libraries define probes: move provider "
                               "p to a file of a folder that -L names"));
  CompileOptions options;
  options.libraries = {
      {"a.d", "provider p { probe a() = fbt::f:entry { } -> fbt::f:return; };"},
      {"b.d", "provider p { probe a(int x) = sdt:::y / x == 1 / { x = arg0; }; };"}};
  EXPECT_EQ(error_of("BEGIN { }", options), "") << "programs do not care";
}

TEST(ProbeDefinitions, LeaveDeclarationsOfUsdtProvidersAlone) {
  EXPECT_TRUE(read("provider p { probe a(int x) : (int y); probe b(); };")->empty());
  EXPECT_EQ(error_of("provider p { probe a(int x) : (int y); probe b(); }; BEGIN { }"), "");
}

/// The world of one place.
class OnePlace final : public Environment {
 public:
  TypeGraph& types() override { return kernel_.types(); }
  ProbeSignature signature(const dif::ProbeDescription&) override {
    ProbeSignature found;
    found.matched = 1;
    return found;
  }
  std::optional<KernelVariable> kernel_variable(std::string_view module,
                                                std::string_view name) override {
    return kernel_.kernel_variable(module, name);
  }

 private:
  FakeKernel kernel_;
};

TEST(ProbeDefinitions, CompileWithTheDeclarationsOfTheirLibrary) {
  OnePlace kernel;
  const std::vector<LibrarySource> libraries = {
      {"a.d", "inline int OTHER = 1; inline int ANSWER = 1;"},
      {"b.d", "#pragma D depends_on library c.d\ninline int ANSWER = 42;"},
      {"c.d", "inline int MORE = 7;"}};

  const auto program =
      compile_definition_part({{"arg0 == ANSWER", 3}, {{"arg1 + MORE", 4}}}, libraries, 1, kernel);

  ASSERT_TRUE(program) << program.error().text;
  ASSERT_EQ(program->clauses.size(), 1u);
  ASSERT_TRUE(program->clauses[0].predicate);
  ASSERT_EQ(program->clauses[0].actions.size(), 1u);
  const auto wrong = compile_definition_part({{}, {{"1", 2}, {"OTHER", 9}}}, libraries, 1, kernel);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().library, "b.d");
  EXPECT_EQ(wrong.error().at.line, 9);
}

}  // namespace
}  // namespace ringside::d
