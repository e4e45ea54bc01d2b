#define ANSWER 42
#define ADD(a, b) ((a) + (b))
