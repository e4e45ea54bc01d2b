/* NAME a clause that commits its own speculation leaves no row for whoever gets it next
 * ENV _DTRACE_TESTING=1
 */
BEGIN { s = speculation(); }
BEGIN { speculate(s); commit(s); }
BEGIN { t = speculation(); }
BEGIN { speculate(t); trace(s == t ? "the same one" : "another one"); }
BEGIN { commit(t); }
BEGIN { exit(0); }
/* EXPECT
 *                    FUNCTION:NAME
 *                           :BEGIN   the same one                     $
 *                           :BEGIN $
 *
 */
