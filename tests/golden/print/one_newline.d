/* NAME a row that ends in print() has one newline
 * OPTIONS
 */
struct point {
	int x;
	int y;
};
struct point p;
BEGIN { print(p); }
BEGIN { print(1); exit(0); }
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN struct point {
 *     int x = 0
 *     int y = 0
 * }
 *   0      1                           :BEGIN int 0x1
 *
 */
