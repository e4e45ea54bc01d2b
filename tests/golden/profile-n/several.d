/* NAME several rates fire side by side
 * OPTIONS -q
 */
profile-500 { @["fast"] = count(); }
profile-100 { @["slow"] = count(); }
tick-200ms { exit(0); }
END { trunc(@, 1); printa("%s\n", @); }
/* EXPECT
 * fast
 *
 */
