/* NAME a pragma is not a probe, whatever it names
 * TAG D_PRAGMA_UNUSED
 */
#pragma D attributes Stable/Stable/Common nothing
