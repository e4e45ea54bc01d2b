/* NAME -v reports the stability of a program
 * RUN $DTRACE -qev -n 'BEGIN { trace(1); }' 2>&1 | grep -v matched | head -13
 */

/* EXPECT
 *
 * Stability attributes for description BEGIN :
 *
 * 	Minimum Probe Description Attributes
 * 		Identifier Names: Stable
 * 		Data Semantics:   Stable
 * 		Dependency Class: Common
 *
 * 	Minimum Statement Attributes
 * 		Identifier Names: Stable
 * 		Data Semantics:   Stable
 * 		Dependency Class: Common
 *
 */
