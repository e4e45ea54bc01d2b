/* NAME exit() acts when its record has no room: the record is a drop
 * OPTIONS -q -b 16
 * EXIT 4
 */
BEGIN { trace(1); }
BEGIN { this->s = 4; printf("lost"); exit(this->s); }
END { trace(2); }
/* EXPECT
 * 12
 */
/* STDERR
 * 1 drop on CPU 0
 */
