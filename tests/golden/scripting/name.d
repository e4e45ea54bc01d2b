/* NAME without a script $$0 is the command as it was called
 * RUN ln -s $DTRACE ./dtrace; ./dtrace -qn 'BEGIN { printf("%s\n", $$0); exit(0); }'
 */

/* EXPECT
 * ./dtrace
 *
 */
