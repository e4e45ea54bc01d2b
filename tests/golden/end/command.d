/* NAME END fires when the command ends
 * OPTIONS -q -c true
 */
END { printf("end\n"); }
/* EXPECT
 * end
 *
 */
