// C of every kind whose place in memory or registers a compiler decides.
// Not linked into the product.
#include "vmm/linux/processes/dwarf_sample_for_tests.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

DEFINE_SAVER

/* As dwz(1) would write it: the name and the build id of a file with shared types. */
__attribute__((used, section(".gnu_debugaltlink"))) static const char shared_types[] =
    "/shared/types\0a build id";

enum color { Red = -1, Green, Blue = 200 };
enum large { Tiny, Huge = 0xffffffff };
typedef unsigned int word_t;
struct unknown;
typedef int (*compare_t)(const void*, const void*, ...);
struct list {
  struct list *next, **previous;
};
struct everything {
  char character;
  const volatile short number;
  word_t word;
  long long wide;
  float real;
  double twice;
  long double precise;
  _Bool truth;
  enum color color;
  enum large large;
  char text[13];
  int matrix[3][5];
  struct list list;
  struct unknown* unknown;
  compare_t compare;
  int* restrict alone;
  _Atomic int counter;
  __int128 huge;
  struct {
    int inner_first;
    union {
      unsigned char bytes[4];
      unsigned int whole;
    };
  };
  unsigned low : 3;
  int : 2;
  signed middle : 11;
  unsigned long high : 40;
  _Bool bit : 1;
  struct packed {
    char before;
    int inside;
  } __attribute__((packed)) packed;
  __attribute__((aligned(64))) char aligned;
  char flexible[];
};

#define MEMBER(m) \
  { #m, offsetof(struct everything, m) * 8, sizeof(((struct everything*)0)->m) * 8 }
#define BIT_FIELD(m, ones)                                     \
  static unsigned long bits_of_##m(int first) {                \
    struct everything value;                                   \
    memset(&value, 0, sizeof value);                           \
    value.m = ones;                                            \
    const unsigned char* bytes = (const unsigned char*)&value; \
    unsigned long found = 0;                                   \
    for (unsigned long n = 0; n < sizeof value * 8; ++n) {     \
      if ((bytes[n / 8] >> n % 8 & 1) == 0) continue;          \
      if (first) return n;                                     \
      ++found;                                                 \
    }                                                          \
    return found;                                              \
  }
BIT_FIELD(low, 7)
BIT_FIELD(middle, -1)
BIT_FIELD(high, (1UL << 40) - 1)
BIT_FIELD(bit, 1)
#define BITS(m) \
  { #m, bits_of_##m(1), bits_of_##m(0) }

int layout_of_everything(struct everything* it) {
  return it->character;
}

const struct sample_layout* sample_layouts(void) {
  static struct sample_layout layouts[2];
  const struct sample_layout everything = {
      "layout_of_everything",
      sizeof(struct everything),
      {MEMBER(character), MEMBER(number),  MEMBER(word),          MEMBER(wide),
       MEMBER(real),      MEMBER(twice),   MEMBER(precise),       MEMBER(truth),
       MEMBER(color),     MEMBER(large),   MEMBER(text),          MEMBER(matrix),
       MEMBER(list),      MEMBER(unknown), MEMBER(compare),       MEMBER(alone),
       MEMBER(counter),   MEMBER(huge),    MEMBER(inner_first),   MEMBER(bytes),
       MEMBER(whole),     BITS(low),       BITS(middle),          BITS(high),
       BITS(bit),         MEMBER(packed),  MEMBER(packed.inside), MEMBER(aligned)}};
  memcpy(&layouts[0], &everything, sizeof everything);
  return layouts;
}

struct one_int {
  int a;
};
struct two_longs {
  long a, b;
};
struct mixed {
  int a;
  double b;
};
struct floats {
  float a, b;
};
struct big {
  long a[3];
};
struct packed_pair {
  char a;
  long b;
} __attribute__((packed));
struct nothing {};
struct fields {
  unsigned a : 5, b : 27; /* no padding, whose bits may be any */
};
struct precise {
  long double a;
};
union either {
  double real;
  long whole;
};
struct over {
  __attribute__((aligned(16))) long a[3];
};
typedef float vector_t __attribute__((vector_size(16)));

long scalars(char a, short b, int c, long d, char* e, enum color f, unsigned long g, _Bool h,
             double i, int j, struct everything* k) {
  return a;
}
void structures(struct one_int a, struct two_longs b, struct mixed c, struct big d, struct floats e,
                struct nothing f, struct fields g, long h, long i) {}
struct big returns_big(int a, long b) {
  return (struct big){{a, b}};
}
struct two_longs returns_pair(int a, long b) {
  return (struct two_longs){a, b};
}
void wide(long a, __int128 b, long double c, int d, struct packed_pair e, int f, __int128 g, int h,
          int i) {}
void spilled(long a, long b, long c, long d, long e, struct two_longs f, long g, long h, __int128 i,
             long j, struct one_int k) {}
void aligned(long a, long b, long c, long d, long e, long f, long g, long double h, long i,
             struct over j, struct one_int k, char l) {}
void others(union either a, struct precise b, vector_t c, struct over d, int e, float f,
            _Complex double g, int h, const struct one_int i) {}
void many_floats(double a, double b, double c, double d, double e, double f, double g, double h,
                 double i, int j, double k, struct floats l) {}

/* LLVM leaves the first argument out. */
__attribute__((noinline)) static int uses_second(int a, int b, int* c) {
  *c += b;
  return b * 2;
}
int calls_uses_second(int n, int* p) {
  return uses_second(n, n + 1, p);
}
#define AS(f) ((__typeof__(&f))saver)

static void run_scalars(void) {
  AS(scalars)(1, 2, 3, 4, (char*)5, Blue, 7, 1, 9, 10, (struct everything*)11);
}
static void run_structures(void) {
  AS(structures)
  ((struct one_int){1}, (struct two_longs){2, 3}, (struct mixed){4, 5}, (struct big){{6, 7, 8}},
   (struct floats){9, 10}, (struct nothing){}, (struct fields){1, 2}, 12, 13);
}
static void run_returns_big(void) {
  AS(returns_big)(1, 2);
}
static void run_returns_pair(void) {
  AS(returns_pair)(1, 2);
}
static void run_wide(void) {
  AS(wide)(1, 2, 3, 4, (struct packed_pair){5, 6}, 7, 8, 9, 10);
}
static void run_spilled(void) {
  AS(spilled)(1, 2, 3, 4, 5, (struct two_longs){6, 7}, 8, 9, 10, 11, (struct one_int){12});
}
static void run_aligned(void) {
  AS(aligned)(1, 2, 3, 4, 5, 6, 7, 8, 9, (struct over){{10}}, (struct one_int){11}, 12);
}
static void run_others(void) {
  AS(others)
  ((union either){.whole = 1}, (struct precise){2}, (vector_t){3}, (struct over){{4}}, 5, 6, 7, 8,
   (struct one_int){9});
}
static void run_many_floats(void) {
  AS(many_floats)(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, (struct floats){12, 13});
}

#define CALL(f) #f, run_##f
#define NOWHERE \
  { 0, 0 }
#define WORD(v) \
  { 1, v }

const struct sample_call* sample_calls(void) {
  // clang before 18 places an __int128 on the stack where the ABI does not: no place is known then.
  static const struct sample_call calls[] = {
      {CALL(scalars),
       11,
       {WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), WORD(Blue), WORD(7), WORD(1), NOWHERE,
        WORD(10), WORD(11)}},
      {CALL(structures),
       9,
       {WORD(1), NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE, WORD(1 | 2 << 5), WORD(12),
        WORD(13)}},
      {CALL(returns_big), 2, {WORD(1), WORD(2)}},
      {CALL(returns_pair), 2, {WORD(1), WORD(2)}},
      {CALL(wide),
       9,
       {WORD(1), NOWHERE, NOWHERE, WORD(4), NOWHERE, WORD(7), NOWHERE, NOWHERE, NOWHERE}},
      {CALL(spilled),
       11,
       {WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), NOWHERE, WORD(8), WORD(9), NOWHERE, NOWHERE,
        NOWHERE}},
      {CALL(aligned),
       12,
       {WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), WORD(6), WORD(7), NOWHERE, WORD(9), NOWHERE,
        WORD(11), WORD(12)}},
      {CALL(others),
       9,
       {WORD(1), NOWHERE, NOWHERE, NOWHERE, WORD(5), NOWHERE, NOWHERE, WORD(8), WORD(9)}},
      {CALL(many_floats),
       12,
       {NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE, WORD(10),
        NOWHERE, NOWHERE}},
      {}};
  return calls;
}
