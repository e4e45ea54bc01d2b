/* NAME a terminal gets no control characters of values, only those of the program's own words
 * RUN python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' $DTRACE -q -s $SCRIPT | tr -d '\r' | cat -v
 */
BEGIN
{
	self->name = strjoin("\033[2J", "a\nb");
	printf("\033[1m%s\033[0m\n", self->name);
	printf("%s|%c\n", 1 ? "\033[m" : "", 27);
	trace(strjoin("c\n", "d"));
	trace("\n");
	@[strjoin("e\t", "f")] = count();
	exit(0);
}
/* EXPECT
 * ^[[1m\033[2Ja\nb^[[0m
 * ^[[m|^[
 * c\nd
 *
 *   e\tf<*>
 */
