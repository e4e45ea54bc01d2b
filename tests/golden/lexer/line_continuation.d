/* NAME white space of every kind separates tokens
 * OPTIONS -q
 */
BEGIN	{
	printf(

	    "%d\n"	,

	    1
	)
	;
	exit(0); }
/* EXPECT
 * 1
 *
 */
