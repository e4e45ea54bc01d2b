/* NAME dtypes writes the types that D makes of others
 * RUN $DTRACE -e -x nolibs -x strsize=64 -x dtypes=out -s $SCRIPT && cat out
 */
struct pair {
	short a[4];
};

BEGIN
{
	x = (struct pair **)NULL;
	exit(0);
}
/* EXPECT
 * string /\x2a 64 bytes *\x2f
 * void * /\x2a 8 bytes *\x2f
 * short [4] /\x2a 8 bytes *\x2f
 * struct pair * /\x2a 8 bytes *\x2f
 * struct pair ** /\x2a 8 bytes *\x2f
 */
