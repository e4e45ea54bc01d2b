#define INNER 7
