/* NAME a flood of data drops nothing that the consumer is told to do; -v tells drops by clause
 * RUN $DTRACE -v -q -b 1k -x switchrate=10s -s $SCRIPT 2>err | grep 'a is'; grep -oE '[0-9]+ drops? of .*' err
 */
BEGIN { this->p = (char *)alloca(600); tracemem(this->p, 600); }
BEGIN { this->p = (char *)alloca(700); tracemem(this->p, 700); }
BEGIN { @a = count(); printa("a is %@d\n", @a); }
BEGIN { clear(@a); }
BEGIN { this->p = (char *)alloca(800); tracemem(this->p, 800); }
BEGIN { @a = count(); printa("a is %@d\n", @a); }
BEGIN { exit(0); }
/* EXPECT
 * a is 2
 * a is 0
 * 1 drop of line 5 (BEGIN)
 * 1 drop of line 8 (BEGIN)
 */
