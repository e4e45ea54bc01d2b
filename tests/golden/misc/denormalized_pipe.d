/* NAME output to a closed pipe ends quietly
 * RUN $DTRACE -qn 'tick-1ms { printf("line\n"); }' | head -1
 */

/* EXPECT
 * line
 */
