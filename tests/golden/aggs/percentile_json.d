/* NAME structured output has both ends of a percentile's bucket as numbers
 * RUN $DTRACE -q -O jsonl -s $SCRIPT | sed -n 's|.*\("aggregation-percentiles":.*\),{"trunc".*|\1|p'
 */
BEGIN
{
	@a["k"] = lquantize(55, 0, 100, 10);
	@a["k"] = lquantize(1000, 0, 100, 10);
	percentile(@a, 50, 99.9);
	trunc(@a);
	exit(0);
}
/* EXPECT
 * "aggregation-percentiles":[{"keys":["k"],"percentiles":[{"percentile":50.0,"low":50,"high":59},{"percentile":99.9,"low":100}]}],"aggregation-name":"a","aggregation-function":"lquantize"}
 */
