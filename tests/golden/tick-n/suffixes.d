/* NAME every suffix of a tick is a probe
 * RUN for s in ns us ms s m h d hz nsec usec msec sec min hour day; do n=100; [ $s = ns ] && n=900000; [ $s = nsec ] && n=900000; [ $s = us ] && n=900; [ $s = usec ] && n=900; $DTRACE -e -n tick-$n$s >/dev/null 2>&1 && printf '%s ' $s; done
 */

/* EXPECT
 * ns us ms s m h d hz nsec usec msec sec min hour day \c
 */
