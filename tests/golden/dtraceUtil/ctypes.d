/* NAME ctypes writes the C types that a program declares
 * RUN $DTRACE -e -x nolibs -x ctypes=out -s $SCRIPT && cat out
 */
enum color { RED, BLUE = 5 };
typedef struct point {
	char a;
	int list[3];
	unsigned int low : 5;
	union { int u; long v; };
	int (*call)(int, ...);
} point_t;
struct later;
typedef unsigned int grid_t[4][2];

BEGIN
{
	exit(0);
}
/* EXPECT
 * enum color {
 *     RED = 0,
 *     BLUE = 5,
 * }; /\x2a 4 bytes *\x2f
 * struct point {
 *     char a; /\x2a at 0 *\x2f
 *     int list[3]; /\x2a at 4 *\x2f
 *     unsigned int low : 5; /\x2a bit 128 *\x2f
 *     union {
 *         int u; /\x2a at 0 *\x2f
 *         long v; /\x2a at 0 *\x2f
 *     }; /\x2a at 24 *\x2f
 *     int (*call)(int, ...); /\x2a at 32 *\x2f
 * }; /\x2a 40 bytes *\x2f
 * typedef struct point point_t; /\x2a 40 bytes *\x2f
 * struct later;
 * typedef unsigned int grid_t[4][2]; /\x2a 32 bytes *\x2f
 */
