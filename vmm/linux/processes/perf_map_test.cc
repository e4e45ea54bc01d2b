#include "vmm/linux/processes/perf_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

namespace ringside::guest_linux {
namespace {

class Text final : public FileBytes {
 public:
  explicit Text(std::string text) : text_(std::move(text)) {}
  std::uint64_t size() const override { return text_.size(); }
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t there = std::min<std::uint64_t>(in_memory, text_.size());
    if (offset >= there) return 0;
    const std::size_t length = std::min<std::uint64_t>(out.size(), there - offset);
    std::memcpy(out.data(), text_.data() + offset, length);
    return length;
  }

  std::string text_;
  std::uint64_t in_memory = UINT64_MAX;
};

std::string named(const PerfMap& map, std::uint64_t address) {
  const auto found = map.at(address);
  return found ? std::string(found->name) + "+" + std::to_string(found->offset) : "";
}

TEST(PerfMap, NamesCodeByItsLines) {
  PerfMap map;
  map.read_more(Text("7f0010 20 py::work:/srv/a.py\n7f0040 10 LazyCompile:*go a.js:7\n"));
  EXPECT_EQ(named(map, 0x7f0010), "py::work:/srv/a.py+0");
  EXPECT_EQ(named(map, 0x7f002f), "py::work:/srv/a.py+31");
  EXPECT_EQ(named(map, 0x7f0030), "");
  EXPECT_EQ(named(map, 0x7f0041), "LazyCompile:*go a.js:7+1");
  EXPECT_EQ(named(map, 0x7f000f), "");
}

TEST(PerfMap, ALaterLineTakesThePlaceOfWhatWasThere) {
  PerfMap map;
  map.read_more(Text("1000 100 old\n1100 10 next\n1080 100 new\n"));
  EXPECT_EQ(named(map, 0x107f), "old+127");
  EXPECT_EQ(named(map, 0x1080), "new+0");
  EXPECT_EQ(named(map, 0x1108), "new+136");
}

TEST(PerfMap, ReadsOnWhereItWas) {
  PerfMap map;
  Text file("10 8 one\n20 8 tw");
  map.read_more(file);
  EXPECT_EQ(named(map, 0x20), "") << "its line is not whole";
  file.text_ += "o\n30 8 three\n";
  file.in_memory = 12;
  map.read_more(file);
  EXPECT_EQ(named(map, 0x20), "") << "its page is not in memory";
  file.in_memory = UINT64_MAX;
  map.read_more(file);
  EXPECT_EQ(named(map, 0x20), "two+0");
  EXPECT_EQ(named(map, 0x30), "three+0");
  file.text_ = "10 8 anew\n";
  map.read_more(file);
  EXPECT_EQ(named(map, 0x10), "anew+0") << "it was written anew, and is shorter";
  EXPECT_EQ(named(map, 0x30), "");
}

TEST(PerfMap, LinesOfAnotherFormAreNone) {
  PerfMap map;
  map.read_more(
      Text("\n\n1000\n1000 10\nx 10 a\n1000 y a\n1000 0 a\n-1 10 a\n1000 10 \n"
           "fffffffffffffff0 ffff last\n2000 1 \x1b[2J\n3000 1 " +
           std::string(5000, 'n') + "\n"));
  EXPECT_EQ(named(map, 0x1000), "");
  EXPECT_EQ(named(map, UINT64_MAX - 1), "last+14");
  EXPECT_EQ(named(map, 0x2000), "?[2J+0");
  EXPECT_EQ(map.at(0x3000)->name.size(), PerfMap::kLongestName);
}

TEST(PerfMap, TooManyNamesAreLeftOut) {
  std::string text;
  for (std::size_t n = 0; n < PerfMap::kMostNames + 2; ++n) {
    for (std::size_t rest = n + 1; rest != 0; rest >>= 4) text += "0123456789abcdef"[rest & 15];
    text += " 1 n\n";
  }
  PerfMap map;
  map.read_more(Text(text));
  EXPECT_LE(map.bytes(), PerfMap::kMostNames * 100);
}

TEST(PerfMap, AnyTextDoesNoHarm) {
  std::mt19937_64 random(1);
  for (unsigned round = 0; round < 50; ++round) {
    std::string text;
    for (unsigned n = 0; n < 2000; ++n) text += "0123456789abcdef  \nxyz"[random() % 22];
    PerfMap map;
    map.read_more(Text(text));
    for (unsigned n = 0; n < 100; ++n) (void)map.at(random() >> (random() % 64));
    EXPECT_LE(map.bytes(), text.size() * 100);
  }
}

}  // namespace
}  // namespace ringside::guest_linux
