// A terminal gets no control characters of a guest, whichever way its text takes; pipes, files and
// -x rawtext get the bytes; the program's own words stay as they are.
#include <gtest/gtest.h>
#include <pty.h>
#include <termios.h>

#include <span>
#include <vector>

#include "cli/output/fake_program_for_tests.h"
#include "dif/program/insn.h"

namespace ringside::cli {
namespace {

using namespace testing_support;

/// A name that clears the screen, forges a line and is no UTF-8 (C1 in both forms).
const std::string kHostile = "\x1b[2J\na\tb\x7f\xc2\x9b\xff\u00e4";
const std::string kShown = "\\033[2J\\na\\tb\\177\\302\\233\\377\u00e4";

/// Code has names that steer a terminal, too.
class HostileProgram : public FakeProgram {
 public:
  std::string describe(GuestVirt) const override { return "mod\x1b`f\x1b"; }
};

class TerminalOutput : public testing::Test {
 protected:
  TerminalOutput() {
    EXPECT_EQ(openpty(&ends_[0], &ends_[1], nullptr, nullptr, nullptr), 0);
    termios plain{};
    tcgetattr(ends_[1], &plain);
    cfmakeraw(&plain);
    tcsetattr(ends_[1], TCSANOW, &plain);
    sink_.emplace(ends_[1]);
    settings_.quiet = true;
  }
  ~TerminalOutput() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  Output& output() {
    if (!output_) output_.emplace(std::move(*Output::create(program_, settings_, *sink_)));
    return *output_;
  }
  void fire(dif::EcbId ecb, std::string_view data) {
    const auto given = std::as_bytes(std::span(data));
    std::vector<std::byte> bytes(given.begin(), given.end());
    dif::TraceData trace_data;
    trace_data.records.push_back({ecb, 0, 0, bytes});
    output().consume(trace_data);
  }
  std::string text() {
    sink_->flush();
    char buffer[8192];
    const ssize_t size = read(ends_[0], buffer, sizeof buffer);
    return {buffer, static_cast<std::size_t>(size > 0 ? size : 0)};
  }
  /// Of a clause with one action, whose one value is these bytes.
  std::string shown(Action action, ValueType type, const std::string& bytes) {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    output_.reset();  // it knows the clauses that were there when it was made
    fire(program_.add({"fbt", "mod", "f", "entry"}, {std::move(action)}, {{0, 0, 0, size, type}}),
         bytes);
    return text();
  }
  std::string printed(std::string format, ValueType type, const std::string& bytes) {
    Action printf = action(ActionKind::Printf);
    printf.format = std::move(format);
    return shown(std::move(printf), type, bytes);
  }

  HostileProgram program_;
  Settings settings_;
  int ends_[2] = {-1, -1};
  std::optional<Sink> sink_;
  std::optional<Output> output_;
};

TEST_F(TerminalOutput, PrintfEscapesItsValuesButNotItsFormat) {
  EXPECT_EQ(printed("\x1b[1m%s\x1b[0m\n\t", kString, kHostile), "\x1b[1m" + kShown + "\x1b[0m\n\t");
  EXPECT_EQ(printed("[%.3s]", kString, kHostile), "[\\033[2]") << "of the guest's characters";
  EXPECT_EQ(printed("[%8s]", kString, "\x1b[J"), "[  \\033[J]") << "as wide as it is shown";
  EXPECT_EQ(printed("%c", {ValueKind::Integer, true, 1}, "\x1b"), "\\033");
  EXPECT_EQ(printed("%ws", {ValueKind::Bytes, false, 8}, std::string("\x1b\0\0\0\x9b\0\0\0", 8)),
            "\\033\\302\\233");
  EXPECT_EQ(printed("%S", kString, "\x1b"), "\\033");
  EXPECT_EQ(printed("%a", {ValueKind::Integer, false, 8}, std::string(8, '\1')), "mod\\033`f\\033");
  EXPECT_EQ(printed("%k", {ValueKind::KernelStack, false, 8}, std::string(8, '\1')),
            "\nmod\\033`f\\033\n");
}

TEST_F(TerminalOutput, TraceAndPrintEscapeTexts) {
  // Others than these are dumped.
  EXPECT_EQ(shown(action(ActionKind::Trace), kString, "a\n\tb\r\b"), "a\\n\\tb\\r\\b");
  EXPECT_EQ(shown(action(ActionKind::Trace), kString, kHostile).find('\x1b'), std::string::npos);
  EXPECT_EQ(
      shown(action(ActionKind::Trace), {ValueKind::KernelSymbol, false, 8}, std::string(8, '\1')),
      "  mod\\033`f\\033" + std::string(43, ' '));
  EXPECT_EQ(shown(action(ActionKind::Print), kString, "\x1b\n"), "string [ \"\\033\\n\" ]\n");
}

TEST_F(TerminalOutput, ConstantsOfTheProgramAreItsOwnWords) {
  Action printf = action(ActionKind::Printf);
  printf.format = "%s%s";
  dif::Difo own;
  own.strings = std::string("\0\x1b[1m\n\0", 7);
  own.text = {dif::encode_indexed(dif::Opcode::Sets, 1, 1), dif::encode_return(1)};
  own.result = kString;
  dif::Difo guests = own;
  guests.text[0] = dif::encode_indexed(dif::Opcode::Ldgs, 0x11c, 1);
  printf.arguments = {own, guests};
  const auto ecb =
      program_.add({"fbt", "", "", "f"}, {printf}, {{0, 0, 0, 6, kString}, {0, 1, 6, 6, kString}});
  Action trace = action(ActionKind::Trace);
  trace.arguments = {own};
  const auto traced = program_.add({"fbt", "", "", "f"}, {trace}, {{0, 0, 0, 6, kString}});

  fire(ecb, std::string("\x1b[1m\n\0\x1b[1m\n\0", 12));
  EXPECT_EQ(text(), "\x1b[1m\n\\033[1m\\n");
  fire(traced, std::string("a\n\0\0\0\0", 6));
  EXPECT_EQ(text(), "a\n");
}

TEST_F(TerminalOutput, KeysOfAggregationsAreEscaped) {
  const auto counts = program_.aggregation(dif::AggregateFunction::Count);
  Action formatted = on_aggregation(ActionKind::Printa, counts);
  formatted.format = "%s=%@d\n";
  const auto with = program_.add({"fbt", "", "", "f"}, {formatted});
  const auto without =
      program_.add({"fbt", "", "", "f"}, {on_aggregation(ActionKind::Printa, counts)});
  dif::TraceData trace_data;
  trace_data.aggregates = {entry(counts, "a\nb", 5)};
  output().consume(trace_data);

  fire(with, "");
  EXPECT_EQ(text(), "a\\nb=5\n");
  fire(without, "");
  EXPECT_EQ(text(), "\n  a\\nb" + std::string(46, ' ') + "                5\n");
  settings_.aggregation_histogram = true;
  fire(without, "");
  EXPECT_NE(text().find("             a\\nb |@"), std::string::npos);
}

TEST_F(TerminalOutput, NamesOfProbesAndMachinesAreEscaped) {
  settings_.quiet = false;
  const auto ecb = program_.add({"fbt", "", "f\x1b[", "entry"}, {});
  fire(ecb, "");
  EXPECT_NE(text().find("f\\033[:entry"), std::string::npos);
  settings_.flow_indent = true;
  fire(ecb, "");
  EXPECT_NE(text().find("-> f\\033["), std::string::npos);
}

TEST_F(TerminalOutput, MessagesAreOneLineEach) {
  Action snapshot = action(ActionKind::Snapshot);
  snapshot.format = "%s";
  settings_.quiet = false;
  shown(snapshot, kString, "a\nringside: b\x1b");

  EXPECT_EQ(output().take_messages(), std::vector<std::string>{"a\\nringside: b\\033: all of it"});
}

TEST_F(TerminalOutput, DocumentsStayWhatTheyAre) {
  const std::pair<OutputFormat, std::string> formats[]{
      {OutputFormat::Json, "\\u001b[2J\\na\\tb\\u007f\\u009b\ufffd\u00e4"},
      {OutputFormat::JsonLines, "\\u001b[2J\\na\\tb\\u007f\\u009b\ufffd\u00e4"},
      {OutputFormat::Xml, "\ufffd[2J\na\tb\ufffd\ufffd\ufffd\u00e4"},
      {OutputFormat::Html, "\ufffd[2J\na\tb\ufffd\ufffd\ufffd\u00e4"},
      {OutputFormat::Csv, "\"\\033[2J\na\tb\\177\\302\\233\ufffd\u00e4\"\r\n"}};
  for (const auto& [format, wanted] : formats) {
    settings_.format = format;
    const std::string document = shown(action(ActionKind::Trace), kString, kHostile);
    EXPECT_NE(document.find(wanted), std::string::npos) << document;
  }
}

TEST_F(TerminalOutput, RawTextGoesAsItIs) {
  sink_->set_raw_text(true);
  EXPECT_EQ(printed("%s", kString, kHostile), kHostile);
}

TEST_F(TerminalOutput, APipeGetsTheBytes) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  sink_.emplace(pipe_ends[1]);
  std::swap(ends_[0], pipe_ends[0]);
  EXPECT_EQ(printed("%s", kString, kHostile), kHostile);
  EXPECT_EQ(shown(action(ActionKind::Trace), kString, "a\n"), "a\n");
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

}  // namespace
}  // namespace ringside::cli
