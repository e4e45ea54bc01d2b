/* NAME what a clause made in scratch memory is still there in its ifs and after them
 * OPTIONS -q
 */
this char *s, *t;
BEGIN
{
	this->p = (char *)alloca(16);
	bcopy("0123456789", this->p, 11);
	this->s = strjoin("ab", "cd");
	if (this->p[0] == '0') {
		this->p[1] = 'x';
		this->t = strjoin("ef", "gh");
		if (1) {
			this->u = (char *)alloca(8);
			bcopy("in", this->u, 3);
		}
	} else {
		this->p[2] = 'y';
	}
	printf("%s %s %s %s\n", stringof(this->p), stringof(this->s), stringof(this->t),
	    stringof(this->u));
	exit(0);
}
/* EXPECT
 * 0x23456789 abcd efgh in
 *
 */
