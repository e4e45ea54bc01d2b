/* NAME a fault says the line, the expression, and what is known of its reason
 * OPTIONS -q -x strsize=64
 */
int zero;
BEGIN { text = "{\"a\": 1}"; }
BEGIN { trace(strtoll(json(text, "r.io.done[1]"))); }
BEGIN
{
	x = 7 / zero;
}
BEGIN { printf("%s", stringof(4)); }
BEGIN { printf("%d %d", 1, *(int *)8192 + 1); }
BEGIN
/strlen(strstr(text, "zzz")) > 1/
{ }
BEGIN { exit(0); }
/* EXPECT
 *
 */
/* STDERR
 * : cause.d:6: json() found no "r.io.done[1]" (text is cut at strsize=64): strtoll(json(text, "r.io.done[1]"))
 * : cause.d:9: 7 / zero
 * : cause.d:11: a null pointer: stringof(4)
 * : cause.d:12: an address of user memory, which copyinstr() and copyin() read: *((int *)8192)
 * : cause.d:14: strstr() found no "zzz": strlen(strstr(text, "zzz"))
 */
