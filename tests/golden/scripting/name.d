/* NAME without a script $$0 is the command
 * RUN ln -s $DTRACE ./dtrace; ./dtrace -qn 'BEGIN { printf("%s\n", $$0); exit(0); }'
 */

/* EXPECT
 * dtrace
 *
 */
