/* NAME aggregations do not depend on bufpolicy=ring
 * OPTIONS -q -x bufpolicy=ring -x bufsize=1k
 */
BEGIN { @a["a"] = count(); @b["b"] = sum(5); exit(0); }
END { printa("%s %@d\n", @a); printa("%s %@d\n", @b); }
/* EXPECT
 * a 1
 * b 5
 *
 */
