// Whatever bytes a record holds, and whatever a program read from a file says about them: printing
// ends, in every format. Sanitizers make this test sharp; RINGSIDE_SEEDS=3000 makes it long.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "cli/output/fake_program_for_tests.h"
#include "dif/program/aggregate_function.h"
#include "dif/program/format.h"
#include "dif/verify/verify_shapes.h"

namespace ringside::cli {
namespace {

using namespace testing_support;
using dif::TypeShape;

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool maybe() { return below(2) == 0; }

  /// Often an edge, else anything.
  std::uint64_t number() {
    constexpr std::uint64_t kEdges[] = {0,          1,          std::uint64_t{1} << 63, INT64_MAX,
                                        UINT64_MAX, UINT32_MAX, std::uint64_t{1} << 31, 65536};
    return below(3) == 0 ? random_() : kEdges[below(std::size(kEdges))];
  }
  std::string text() {
    std::string result(below(12), '\0');
    for (char& c : result) c = static_cast<char>(maybe() ? 'a' + below(26) : random_());
    return result;
  }
  std::vector<std::byte> bytes(std::size_t size) {
    std::vector<std::byte> result(size);
    const bool printable = maybe();
    for (std::byte& byte : result) {
      byte = static_cast<std::byte>(printable ? ' ' + below(90) : random_());
    }
    return result;
  }

  ValueType type() {
    const auto kind = static_cast<ValueKind>(below(11));
    constexpr std::uint32_t kIntegers[] = {1, 2, 4, 8};
    if (kind == ValueKind::Integer) return {kind, maybe(), kIntegers[below(4)]};
    return {kind, false, static_cast<std::uint32_t>(below(4) * 8)};
  }

  TypeShape shape(std::uint32_t shapes) {
    TypeShape result;
    result.kind = static_cast<TypeShape::Kind>(below(10));
    result.name = text();
    result.size = maybe() ? 1u << below(4) : below(64);
    if (below(20) == 0) result.size = number();
    result.is_signed = maybe();
    result.is_char = maybe();
    result.element = static_cast<std::uint32_t>(below(shapes));
    result.count = static_cast<std::uint32_t>(below(20) == 0 ? number() : below(5));
    for (auto members = below(4); members > 0; --members) {
      result.members.push_back({text(), static_cast<std::uint32_t>(below(shapes)),
                                static_cast<std::uint32_t>(below(80)),
                                static_cast<std::uint32_t>(maybe() ? 0 : below(65))});
    }
    for (auto names = below(3); names > 0; --names) {
      result.enumerators.emplace_back(text(), static_cast<std::int64_t>(below(300)));
    }
    return result;
  }

  /// One that the verifier takes.
  std::string format(bool aggregated) {
    constexpr std::string_view kKinds = "aAcCdeEfFgGiIkopPsSTuxXY";
    constexpr std::string_view kPieces[] = {"-", "+", " ",   "#",  "0", "'",   "*",
                                            ".", "7", "300", ".*", "l", "hhh", "w"};
    std::string result;
    for (auto conversions = 1 + below(4); conversions > 0; --conversions) {
      std::string one = "%";
      for (auto pieces = below(4); pieces > 0; --pieces) one += kPieces[below(std::size(kPieces))];
      if (aggregated && maybe()) one.insert(1, "@");
      one += kKinds[below(kKinds.size())];
      if (dif::parse_format(one)) result += text() + one;
    }
    return dif::parse_format(result) ? result : "%d";
  }

  dif::Aggregation aggregation() {
    for (;;) {
      dif::Aggregation result;
      result.name = text();
      result.function = static_cast<dif::AggregateFunction>(below(9));
      for (auto keys = below(3); keys > 0; --keys) result.keys.push_back(type());
      result.parameters = number();
      if (result.function == dif::AggregateFunction::Lquantize) {
        result.parameters = dif::LinearParameters{static_cast<std::int32_t>(number()),
                                                  static_cast<std::uint16_t>(below(40)),
                                                  static_cast<std::uint16_t>(number())}
                                .pack();
      }
      if (result.function == dif::AggregateFunction::Llquantize) {
        const auto small = [&](unsigned n) { return static_cast<std::uint16_t>(below(n)); };
        result.parameters =
            dif::LogLinearParameters{small(12), small(5), small(20), small(40)}.pack();
      }
      if (dif::check_aggregation(result)) return result;
    }
  }

  dif::AggregateEntry entry(const dif::Aggregation& aggregation, std::uint32_t index) {
    dif::AggregateEntry result;
    result.aggregation = index;
    result.first_seen = below(10);
    result.key = bytes(below(50));
    result.words.resize(dif::aggregate_words(aggregation));
    const bool sparse = maybe();
    for (std::int64_t& word : result.words) {
      if (!sparse || below(8) == 0) word = static_cast<std::int64_t>(number());
    }
    return result;
  }

  Action action(std::uint32_t shapes, std::uint32_t aggregations) {
    constexpr ActionKind kKinds[] = {
        ActionKind::Trace,  ActionKind::Print,  ActionKind::Print,     ActionKind::Printf,
        ActionKind::Printf, ActionKind::Printa, ActionKind::Tracemem,  ActionKind::TracememDynamic,
        ActionKind::Clear,  ActionKind::Trunc,  ActionKind::Normalize, ActionKind::Denormalize,
        ActionKind::Exit};
    Action result;
    result.kind = kKinds[below(std::size(kKinds))];
    if (result.kind == ActionKind::Printf) result.format = format(false);
    if (result.kind == ActionKind::Printa && maybe()) result.format = format(true);
    result.argument = number();
    result.has_argument = maybe();
    if (maybe()) result.shapes = {static_cast<std::uint32_t>(below(shapes))};
    result.aggregations.resize(1 + below(2));
    for (std::uint32_t& each : result.aggregations) {
      each = static_cast<std::uint32_t>(below(aggregations));
    }
    return result;
  }

  void set(Settings& settings) {
    settings.format = static_cast<OutputFormat>(below(6));
    settings.flow_indent = below(4) == 0;
    settings.quiet = maybe();
    settings.testing = maybe();
    settings.raw_bytes = below(4) == 0;
    settings.sort_by_key = maybe();
    settings.sort_reversed = maybe();
    settings.sort_position = number();
    settings.sort_key_position = number();
    settings.aggregation_histogram = maybe();
    settings.aggregation_pack = maybe();
    settings.aggregation_zoom = maybe();
    settings.utf8 = maybe();
    settings.print_all_aggregations = maybe();
  }

 private:
  std::mt19937_64 random_;
};

class HostileOutput : public testing::Test {
 protected:
  /// A program, its records and its aggregations, all from one seed.
  void print_one(unsigned seed) {
    Generator random(seed);
    FakeProgram program;
    dif::Program& tables = program.mutable_program();
    const auto shapes = static_cast<std::uint32_t>(1 + random.below(6));
    for (std::uint32_t i = 0; i < shapes; ++i) tables.shapes.push_back(random.shape(shapes));
    const auto aggregations = static_cast<std::uint32_t>(1 + random.below(3));
    for (std::uint32_t i = 0; i < aggregations; ++i) {
      tables.aggregations.push_back(random.aggregation());
    }
    std::vector<Action> actions;
    for (auto n = 1 + random.below(5); n > 0; --n) {
      actions.push_back(random.action(shapes, aggregations));
    }
    std::vector<dif::RecordField> fields;
    for (std::uint32_t i = 0; i < actions.size(); ++i) {
      for (std::uint32_t argument = 0; argument < 3; ++argument) {
        fields.push_back({i, argument, static_cast<std::uint32_t>(random.below(100)),
                          static_cast<std::uint32_t>(random.below(41)), random.type()});
      }
    }
    const dif::ProbeDescription probe{"fbt", random.text(), random.text(), "entry"};
    const dif::EcbId ecb = program.add(probe, actions, fields);
    if (!dif::verify_shapes(tables)) return;
    ++printed_;

    Settings settings;
    random.set(settings);
    auto output = Output::create(program, settings, sink_);
    ASSERT_TRUE(output) << output.error().message;
    for (int round = 0; round < 3; ++round) consume(random, *output, tables, ecb);
    output->finish();
    sink_.flush();
  }

  static void consume(Generator& random, Output& output, const dif::Program& tables,
                      dif::EcbId ecb) {
    dif::TraceData trace_data;
    for (int i = 0; i < 4; ++i) trace_data.storage.push_back(random.bytes(random.below(130)));
    for (const auto& storage : trace_data.storage) {
      trace_data.records.push_back(
          {ecb, static_cast<std::uint32_t>(random.below(3)), random.number(), storage});
    }
    for (int i = 0; i < 4; ++i) {
      const auto index = static_cast<std::uint32_t>(random.below(tables.aggregations.size()));
      trace_data.aggregates.push_back(random.entry(tables.aggregations[index], index));
    }
    trace_data.faults.push_back(
        {ecb, 0, random.number(), static_cast<std::uint32_t>(random.number()),
         Fault{static_cast<FaultKind>(random.below(10)), 0, random.number()}});
    trace_data.drops.resize(2);
    trace_data.drops[1][random.below(dif::kDropKinds)] = random.number();
    output.consume(trace_data);
    output.take_messages();
    output.take_drops();
  }

  int fd_ = open("/dev/null", O_WRONLY);
  Sink sink_{fd_};
  int printed_ = 0;
};

TEST_F(HostileOutput, AnyBytesOfAnyTypeArePrinted) {
  const char* const more = std::getenv("RINGSIDE_SEEDS");
  const unsigned seeds = more != nullptr ? static_cast<unsigned>(std::atoi(more)) : 100;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    print_one(seed);
  }
  EXPECT_GT(printed_, 20);
  close(fd_);
}

}  // namespace
}  // namespace ringside::cli
