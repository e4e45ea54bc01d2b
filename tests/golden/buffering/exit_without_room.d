/* NAME exit() has room of its own beside a full buffer
 * OPTIONS -q -b 16
 * EXIT 4
 */
BEGIN { trace(1); }
BEGIN { this->s = 4; printf("kept"); exit(this->s); }
END { trace(2); }
/* EXPECT
 * 1kept2
 */
