#include "dif/dof/dof.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "dif/dof/dof_format.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"

namespace ringside::dif {
namespace {

using namespace testing;

/// Programs with something in every table and nothing that the verifier would accept.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {}

  Program make() {
    Program program;
    fill(program.clauses, [this] { return clause(); });
    fill(program.aggregations, [this] { return aggregation(); });
    fill(program.shapes, [this] { return shape(); });
    for (std::size_t i = pick(4); i > 0; --i) program.options[text()] = text();
    fill(program.needs, [this] { return need(); });
    fill(program.kernel_names, [this] { return kernel_name(); });
    return program;
  }

 private:
  std::uint64_t number() { return pick(2) == 0 ? pick(10) : random_(); }
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  bool flag() { return pick(2) == 1; }
  std::string text() {
    std::string made(pick(9), ' ');
    for (char& c : made) c = static_cast<char>(random_());
    return made;
  }
  template <class E>
  E choice(E last) {
    return static_cast<E>(pick(static_cast<std::size_t>(last) + 1));
  }
  template <class T, class Make>
  void fill(std::vector<T>& out, Make make) {
    for (std::size_t i = pick(4); i > 0; --i) out.push_back(static_cast<T>(make()));
  }
  ValueType type() {
    return {choice(ValueKind::UserAddress), flag(), static_cast<std::uint32_t>(number())};
  }
  Difo object() {
    Difo made;
    fill(made.text, [this] { return number(); });
    fill(made.integers, [this] { return number(); });
    made.strings = text();
    fill(made.variables, [this] {
      return Variable{static_cast<std::uint16_t>(number()), choice(VariableScope::Clause),
                      choice(VariableKind::Associative), type(), text()};
    });
    made.result = type();
    made.destructive = flag();
    fill(made.relocations, [this] {
      return Relocation{choice(Relocation::Place::Variable), static_cast<std::uint32_t>(number()),
                        static_cast<std::uint32_t>(number())};
    });
    return made;
  }
  Action action() {
    Action made;
    made.kind = choice(ActionKind::Evaluate);
    fill(made.arguments, [this] { return object(); });
    made.format = text();
    made.text = text();
    fill(made.aggregations, [this] { return number(); });
    made.argument = number();
    made.has_argument = flag();
    made.quantize_increment = flag();
    fill(made.shapes, [this] { return number(); });
    return made;
  }
  Attributes attributes() {
    return {choice(Stability::Standard), choice(Stability::Standard),
            choice(DependencyClass::Common)};
  }
  Clause clause() {
    Clause made;
    fill(made.probes, [this] { return ProbeDescription{text(), text(), text(), text()}; });
    if (flag()) made.predicate = object();
    fill(made.actions, [this] { return action(); });
    if (flag()) {
      made.repeat = {static_cast<std::uint32_t>(number()), static_cast<std::uint32_t>(number())};
    }
    made.source_name = text();
    made.line = static_cast<int>(number());
    made.description_attributes = attributes();
    made.statement_attributes = attributes();
    fill(made.argument_types, [this] {
      return ArgumentType{static_cast<std::uint32_t>(number()), text()};
    });
    return made;
  }
  Aggregation aggregation() {
    Aggregation made{text(), choice(AggregateFunction::Llquantize), {}, number()};
    fill(made.keys, [this] { return type(); });
    return made;
  }
  TypeShape shape() {
    TypeShape made;
    made.kind = choice(TypeShape::Kind::Function);
    made.name = text();
    made.size = number();
    made.is_signed = flag();
    made.is_char = flag();
    made.element = static_cast<std::uint32_t>(number());
    made.count = static_cast<std::uint32_t>(number());
    fill(made.members, [this] {
      return TypeShape::Member{text(), static_cast<std::uint32_t>(number()),
                               static_cast<std::uint32_t>(number()),
                               static_cast<std::uint32_t>(number())};
    });
    fill(made.enumerators, [this] { return std::pair(text(), std::int64_t(number())); });
    if (flag()) made.kernel_name = static_cast<std::uint32_t>(number());
    return made;
  }

  KernelNeed need() { return {text(), text(), text(), text(), number()}; }
  KernelName kernel_name() {
    return {choice(KernelName::Kind::Elements),
            text(),
            text(),
            text(),
            text(),
            number(),
            flag(),
            static_cast<std::uint8_t>(number()),
            static_cast<std::int32_t>(number())};
  }

  std::mt19937_64 random_;
};

std::string refusal(std::span<const std::byte> bytes) {
  const auto read = read_dof(bytes);
  return read ? "" : read.error().message;
}

std::vector<std::byte> sample() {
  Program source = count_by_execname();
  source.clauses[0].probes = {{"fbt", "vmlinux", "vfs_read", "entry"}};
  return write_dof(source);
}

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// Where the header of the table's section is.
std::size_t section(dof::Table table) {
  return dof::kHeaderBytes + static_cast<std::size_t>(table) * dof::kSectionHeaderBytes;
}
std::size_t contents(const std::vector<std::byte>& bytes, dof::Table table) {
  std::uint64_t offset = 0;
  std::memcpy(&offset, bytes.data() + section(table) + 16, sizeof offset);
  return offset;
}

TEST(Dof, EverythingOfAProgramSurvivesTheRoundTrip) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Program source = RandomProgram(seed).make();
    const auto read = read_dof(write_dof(source));
    ASSERT_TRUE(read) << seed << ": " << read.error().message;
    ASSERT_TRUE(*read == source) << seed;
  }
}

TEST(Dof, TheEmptyProgramIsAProgram) {
  const auto read = read_dof(write_dof({}));
  ASSERT_TRUE(read);
  EXPECT_TRUE(*read == Program{});
}

TEST(Dof, WhatWasReadPassesTheVerifierAsBefore) {
  const auto read = read_dof(sample());
  ASSERT_TRUE(read);
  EXPECT_TRUE(verify_program(*read));
}

TEST(Dof, BeginsAsThePublishedFormatDoes) {
  const auto bytes = sample();
  const std::uint8_t ident[] = {0x7f, 'D', 'O', 'F', 2, 1, 2, 2, 8, 8, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(std::memcmp(bytes.data(), ident, sizeof ident), 0);
  EXPECT_EQ(bytes.size() % 8, 0u);
}

TEST(Dof, RefusesAHeaderThatIsNotIts) {
  auto bytes = sample();
  EXPECT_EQ(refusal({}), "DOF: the header is truncated");
  EXPECT_EQ(refusal(std::span(bytes).first(63)), "DOF: the header is truncated");
  EXPECT_EQ(refusal(std::vector<std::byte>(kMostDofBytes + 1)), "DOF: more than 8388608 bytes");
  const auto with = [&](std::size_t at, std::uint8_t value) {
    auto changed = bytes;
    put(changed, at, value);
    return refusal(changed);
  };
  EXPECT_EQ(with(1, 'E'), "DOF: bad magic");
  EXPECT_EQ(with(4, 1), "DOF: data model 1 is not LP64");
  EXPECT_EQ(with(5, 2), "DOF: byte order 2 is not little endian");
  EXPECT_EQ(with(6, 1), "DOF: version 1 is not 2");
  EXPECT_EQ(with(7, 1), "DOF: DIF version 1 is not 2");
  EXPECT_EQ(with(8, 9), "DOF: 9 registers where there are 8");
  EXPECT_EQ(with(16, 7), "DOF: entries of format 7 are not known");
  EXPECT_EQ(with(16, 2),
            "DOF: entries of format 2 are an older ringside's: compile the program again");
  EXPECT_EQ(with(20, 7), "DOF: headers of another size");
  EXPECT_EQ(with(28, 255), "DOF: the section headers are truncated");
  bytes.push_back(std::byte{0});
  EXPECT_EQ(refusal(bytes), "DOF: 977 bytes where the header says 976");
}

TEST(Dof, RefusesSectionsThatCannotBe) {
  const auto bytes = sample();
  const auto with = [&](std::size_t at, auto value) {
    auto changed = bytes;
    put(changed, at, value);
    return refusal(changed);
  };
  EXPECT_EQ(with(section(dof::Table::Objects) + 24, std::uint64_t{1} << 40),
            "DOF: section 4 is truncated");
  EXPECT_EQ(with(section(dof::Table::Words) + 16, UINT64_MAX), "DOF: section 1 is truncated");
  EXPECT_EQ(with(section(dof::Table::Words) + 4, 3u), "DOF: section 1 is not aligned");
  EXPECT_EQ(with(section(dof::Table::Words) + 12, 8u),
            "DOF: section 1 has entries of another size");
  EXPECT_EQ(with(section(dof::Table::Words), 19u), "DOF: section 1 has entries of another size");
  EXPECT_EQ(with(section(dof::Table::Indices), dof::kOurs + 2),
            "DOF: section 11 has entries of another size");
  EXPECT_EQ(with(section(dof::Table::Words), 1u), "DOF: no section has type 0x7");
}

TEST(Dof, RefusesEntriesThatReferToNothing) {
  const auto bytes = sample();
  auto changed = bytes;
  put(changed, contents(bytes, dof::Table::Objects) + 4, 1000u);
  EXPECT_EQ(refusal(changed),
            "DOF: section of type 0x6, entry 0: index out of range: 1000 entries from 0 of 2");
  changed = bytes;
  put(changed, contents(bytes, dof::Table::Objects), 1u);
  EXPECT_NE(refusal(changed).find("index out of range: 2 entries from 1"), std::string::npos);
  changed = bytes;
  put(changed, contents(bytes, dof::Table::Actions), std::uint16_t{999});
  EXPECT_EQ(refusal(changed), "DOF: section of type 0x5, entry 0: 999 is no such kind");
  changed = bytes;
  put(changed, contents(bytes, dof::Table::Objects) + 4, 1u);
  EXPECT_EQ(refusal(changed),
            "DOF: section of type 0x7, entry 0: nothing refers to what follows 1");
}

TEST(Dof, DamageIsRefusedOrHarmless) {
  std::mt19937_64 random(20'241'121);
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto bytes = write_dof(seed % 2 == 0 ? RandomProgram(seed).make() : count_by_execname());
    for (int round = 0; round < 60; ++round) {
      auto damaged = bytes;
      for (int change = 0; change < 3; ++change) {
        damaged[random() % damaged.size()] = static_cast<std::byte>(random());
      }
      if (round % 7 == 0) damaged.resize(random() % damaged.size());
      auto read = read_dof(damaged);
      if (read) {
        EXPECT_TRUE(read_dof(write_dof(*read)).value() == *read);
        (void)verify_program(std::move(*read));
      } else {
        EXPECT_TRUE(read.error().message.starts_with("DOF: ")) << read.error().message;
      }
    }
  }
}

TEST(Dof, AProgramThatIsTooLargeIsNotWritten) {
  Program source = count_by_execname();
  source.clauses[0].source_name = std::string(kMostDofBytes, 'x');
  EXPECT_TRUE(write_dof(source).empty());
}

}  // namespace
}  // namespace ringside::dif
