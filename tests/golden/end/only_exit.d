/* NAME END alone, with exit(): the status is the one of END
 * OPTIONS -q -c true  EXIT 5
 */
END { exit(5); }
/* EXPECT
 *
 */
