/* NAME loads of any address are safe
 * OPTIONS -q
 */
BEGIN { x = *(char *)0; }
BEGIN { x = *(char *)1; }
BEGIN { x = *(char *)0x7fffffffffffffff; }
BEGIN { x = *(char *)-1; }
BEGIN { x = *(int *)0xffff888000000000; }
BEGIN { printf("survived\n"); exit(0); }
/* EXPECT
 * survived
 *
 */
