/* NAME -O perfetto writes a clock, a track of the machine, counters, and an instant with what was recorded
 * RUN $DTRACE -q -O perfetto -o trace -s $SCRIPT && protoc --decode_raw < trace
 */
BEGIN
{
	printf("hello %d\n", 3);
	@sizes["a"] = sum(7);
	exit(0);
}
/* EXPECT
 * 1 {
 *   10: 1
 *   12 {
 *     1 {
 *       1: 1
 *       2: "dtrace"
 *     }
 *     2 {
 *       1: 1
 *       2: "BEGIN"
 *     }
 *   }
 *   13: 1
 *   87: 1
 *   59 {
 *     58: 3
 *   }
 *   6 {
 *     1 {
 *       1: 3
 *       2:<*>
 *     }
 *     1 {
 *       1: 6
 *       2:<*>
 *     }
 *     2: 6
 *   }
 * }
 * 1 {
 *   10: 1
 *   12 {
 *     3 {
 *       1: 1
 *       2: "message"
 *     }
 *     3 {
 *       1: 2
 *       2: "value"
 *     }
 *     3 {
 *       1: 3
 *       2: "exit"
 *     }
 *   }
 *   60 {
 *     1: 2
 *     2: "ringside"
 *   }
 * }
 * 1 {
 *   10: 1
 *   60 {
 *     1: 1
 *     5: 2
 *     2: "@sizes[a]"
 *     8 {
 *       3: 2
 *     }
 *   }
 * }
 * 1 {
 *   10: 1
 *   8:<*>
 *   13: 2
 *   11 {
 *     9: 4
 *     11: 1
 *     30: 7
 *   }
 * }
 * 1 {
 *   10: 1
 *   8:<*>
 *   13: 2
 *   11 {
 *     9: 3
 *     11: 2
 *     3: 1
 *     10: 1
 *     4 {
 *       1: 1
 *       6: "hello 3"
 *     }
 *     4 {
 *       1: 2
 *       4: 3
 *     }
 *     4 {
 *       1: 3
 *       4: 0
 *     }
 *   }
 * }
 */
