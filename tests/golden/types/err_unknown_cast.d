/* NAME a cast to an unknown type names it
 * RUN $DTRACE -en 'BEGIN { x = (nosuch_t *)arg0; }'; $DTRACE -en 'nosuch_t x; BEGIN { }'; echo $?
 */
/* EXPECT
 * 1
 */
/* STDERR
 * failed to resolve type nosuch_t: Unknown type name
 * failed to resolve type nosuch_t: Unknown type name
 */
