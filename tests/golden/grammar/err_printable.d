/* NAME what an error shows of a script is printable
 * RUN printf 'BEGIN { x = "\303\244\377"; trace(1\001\302\233); }' > a.d; $DTRACE -x errtags -es a.d; echo $?
 */
/* EXPECT
 * 1
 */
/* STDERR
 * [D_SYNTAX] line 1: syntax error near "\001"
 * BEGIN { x = "ä\377"; trace(1\001\302\233); }
 */
