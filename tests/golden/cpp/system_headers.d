/* NAME headers of the system are no obstacle to the compiler
 * OPTIONS -qC
 */
#include <sys/types.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <fcntl.h>
#include <errno.h>

BEGIN
{
	printf("%d %d %d %d %d\n", sizeof (struct sockaddr_in), O_WRONLY, ENOENT, SIGKILL,
	    SOCK_STREAM);
	exit(0);
}
/* EXPECT
 * 16 1 2 9 1
 *
 */
