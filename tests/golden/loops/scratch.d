/* NAME a loop sees the scratch memory that was made before it, and its own ends with each round
 * OPTIONS -q
 */
this char *r;
BEGIN
{
	this->p = (char *)alloca(16);
	for (this->i = 0; this->i < 1000; this->i++) {
		this->q = (char *)alloca(1024);
		this->q[1000] = 'a';
		this->p[this->i & 7] = this->q[1000] + (this->i & 7);
	}
	this->r = strjoin("after", "wards");
	printf("%s %s\n", stringof(this->p), stringof(this->r));
	exit(0);
}
/* EXPECT
 * abcdefgh afterwards
 *
 */
