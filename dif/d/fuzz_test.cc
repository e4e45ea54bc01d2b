// Damaged programs: whatever the bytes, the answer is a program or a message.
#include <gtest/gtest.h>

#include <random>

#include "dif/bind/bind.h"
#include "dif/d/testing/program_runner.h"
#include "dif/verify/verify.h"

namespace ringside::d {
namespace {

constexpr std::string_view kSamples[] = {
    R"(#!/usr/sbin/dtrace -s
#pragma D option quiet
typedef struct s { int a; unsigned b : 3; char c[4]; union { int x; long y; }; } s_t;
enum e { A, B = 3 };
self int t; this string u; int arr[int, string];
inline int two = 1 + 1;
BEGIN { arr[1, "x"] = two; this->u = "abc\n\x41"; self->t = 'a'; })",
    R"(fbt::vfs_*:entry /execname == "workload" && arg0 / 2 > 3/ {
  @r[execname, pid] = lquantize(args[2], 0, 100, 10);
  if (arg0 > 1) { trace(1); } else { trace(stringof(args[1]->comm)); } })",
    R"(BEGIN { @a = count(); x = 1; x += 2; x <<= 3; trace(x ? -x : ~x); printf("%d %s\n", x++, execname);
  printa("%@d", @a); } /* comment */ END { trace(`number + sizeof(struct task_struct)); exit(0); })",
    R"(translator struct file < struct file *f > { f_pos = f->f_pos; f_mode = 3; };
provider p { probe a(int, char *); probe b(int x) : (int); };
#pragma D attributes Stable/Stable/Common provider p args
#pragma D binding "1.0" y
struct s { int a : 3; string n; long v[2]; } y;
inline int twice[int n] = n * 2; inline struct file *f = xlate <struct file *> (curthread->file);
BEGIN { trace(f->f_pos); w = xlate <struct file> (curthread->file); trace(twice[w.f_mode++]);
  y.n = "ab"; y.a = -1; y.v[1] = uregs[3]; k[i++] = 1; k[i++] += 2; })",
    R"(fbt::vfs_read:entry { p = (struct file *)alloca(32); p->f_mode = 3; *(int *)p = 4;
  trace(p->f_mode ^^ 1); trace(curthread->counts[1]); trace(offsetof(struct task_struct, file));
  a[curthread] = self->b++; })",
    R"(BEGIN /!self->t && n[1, "k"] == NULL && (y = 5) > this->k-- && s != "x"/ { self->t = timestamp;
  n[z++, "k"]++; this->k = (char)y + self->t; s = strjoin("a", "b"); if (z) { w = -1U >> 3; } })"};

constexpr std::string_view kPieces[] = {
    "(",       ")",     "{",  "}",      "[",      "]",    ";",       ",",     "/",
    "*",       "\"",    "'",  "\\",     "->",     "@",    "$1",      "$$",    "`",
    "struct ", "int ",  "x",  "self->", "this->", "1",    "0x",      "-",     "++",
    "=",       "?",     ":",  "/*",     "*/",     "\n#",  "sizeof ", "args[", "(char)",
    "string ", "enum ", "%s", "!",      "~",      "if (", "else "};

std::string mutate(std::mt19937& random) {
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  std::string text(kSamples[pick(std::size(kSamples))]);
  for (std::size_t changes = 1 + pick(1 + pick(5)); changes > 0; --changes) {
    const std::size_t at = pick(text.size() + 1);
    switch (pick(8)) {
      case 0: text.insert(at, kPieces[pick(std::size(kPieces))]); break;
      case 1: text.insert(at, 1, static_cast<char>(random())); break;
      case 2: text.erase(at, 1 + pick(12)); break;
      case 3: text = text.substr(0, at); break;
      case 4:
      case 5:
      case 6:  // neighbours change places
        if (at + 2 < text.size()) std::swap(text[at], text[at + 1 + pick(2)]);
        break;
      default: {
        const std::string_view other = kSamples[pick(std::size(kSamples))];
        text.insert(at, other.substr(pick(other.size()), pick(40)));
      }
    }
  }
  return text;
}

TEST(DamagedPrograms, StartFromProgramsThatCompile) {
  for (const std::string_view sample : kSamples) {
    EXPECT_EQ(run(sample).error, "") << sample;
  }
}

TEST(DamagedPrograms, AreCompiledOrRefused) {
  std::mt19937 random(20'240'607);
  FakeKernel kernel;
  int compiled = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::string source = mutate(random);
    auto program = compile(source, {}, kernel);
    if (!program) {
      EXPECT_TRUE(program.error().tag.starts_with("D_")) << source;
      continue;
    }
    ++compiled;
    auto bound = dif::bind(program->program, kernel);
    ASSERT_TRUE(bound) << source << "\n" << bound.error().message;
    const auto verified = dif::verify_program(std::move(*bound));
    EXPECT_TRUE(verified) << source << "\n" << verified.error().message;
  }
  EXPECT_GT(compiled, 100) << "the damage is too great to test anything";
}

}  // namespace
}  // namespace ringside::d
