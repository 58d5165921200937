"""Many processes, many threads, and programs without a file work inside; none is left unreaped."""
import os
import subprocess

import inside

ORPHANS = 20000

# Each child leaves a grandchild behind at once; init inherits and must reap all of them. The program
# then waits until nothing but init and itself is in the process table.
DOUBLE_FORKS = r"""
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int processes(void) {
    int found = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e; (e = readdir(d)) != NULL;) found += isdigit((unsigned char)e->d_name[0]) != 0;
    closedir(d);
    return found;
}
int main(int argc, char **argv) {
    int wanted = atoi(argv[1]), most = 0;
    for (int i = 0; i < wanted; i++) {
        pid_t child = fork();
        if (child < 0) return perror("fork"), 1;
        if (child == 0) {
            pid_t orphan = fork();
            _exit(orphan < 0);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0) return puts("a fork failed"), 1;
        if (i % 500 == 0) { int now = processes(); if (now > most) most = now; }
    }
    for (int tries = 0; processes() > 2; tries++) {
        if (tries > 60000) return printf("%d processes are left\n", processes()), 1;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fprintf(stderr, "most at once: %d\n", most);
    printf("%d orphans, none left\n", wanted);
    return argc > 9;
}
"""

THREADS = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdatomic.h>
enum { threads = 256, rounds = 500 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;
static sem_t done;
static long plain;
static atomic_long counted;
static _Thread_local long own;
static void *work(void *argument) {
    (void)argument;
    pthread_barrier_wait(&start);
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&lock);
        plain++;
        pthread_mutex_unlock(&lock);
        counted++;
        own++;
    }
    sem_post(&done);
    return (void *)own;
}
int main(void) {
    pthread_t all[threads];
    pthread_barrier_init(&start, NULL, threads);
    sem_init(&done, 0, 0);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&all[i], NULL, work, NULL) != 0) return 1;
    long sum = 0;
    for (int i = 0; i < threads; i++) sem_wait(&done);
    for (int i = 0; i < threads; i++) { void *r; pthread_join(all[i], &r); sum += (long)r; }
    printf("%ld %ld %ld\n", plain, counted, sum);
    return 0;
}
"""

WITHOUT_A_FILE = r"""
import os, shutil
fd = os.memfd_create("program")
with open(fd, "wb", closefd=False) as out, open("/usr/bin/env", "rb") as program:
    shutil.copyfileobj(program, out)
if os.fork() == 0:
    os.execve(fd, ["env", "echo", "by descriptor"], {"PATH": "/usr/bin:/bin"})
os.wait()
print(os.spawnv(os.P_WAIT, f"/proc/self/fd/{fd}", ["env", "sh", "-c", "echo by name; exit 4"]))
"""

QUEUES = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
shm = libc.shmget(0, 4096, 0o1600)
libc.shmat.restype = ctypes.c_void_p
area = libc.shmat(shm, None, 0)
if os.fork() == 0:
    ctypes.memmove(area, b"shared", 7)
    os._exit(0)
os.wait()
print(ctypes.string_at(area))
libc.shmctl(shm, 0, None)
sem = libc.semget(0, 1, 0o1600)
print(sem >= 0, libc.semctl(sem, 0, 0))
queue = libc.mq_open(b"/glove-test-%d" % os.getpid(), 0o102, 0o600, None)
print(queue >= 0, libc.mq_send(queue, b"message", 7, 1))
got = ctypes.create_string_buffer(8192)
print(libc.mq_receive(queue, got, 8192, None), got.value)
libc.mq_unlink(b"/glove-test-%d" % os.getpid())
"""


class Processes(inside.Case):
    def compiled(self, name, text, *options):
        self.need("gcc")
        source, program = self.place.put(f"{name}.c", text), os.path.join(self.place.workspace, name)
        subprocess.run(["/usr/bin/gcc", "-O1", "-o", program, source, *options], check=True)
        return program

    def test_twenty_thousand_orphans(self):
        program = self.compiled("orphans", DOUBLE_FORKS)
        out = self.inside(program, str(ORPHANS), timeout=2 * inside.PATIENCE)
        self.assertEqual(out, f"{ORPHANS} orphans, none left\n")

    def test_many_threads(self):
        program = self.compiled("threads", THREADS, "-pthread")
        bare, within = self.place.bare(program), self.place.run(program)
        self.assertEqual(bare.stdout, b"128000 128000 128000\n", bare.stderr)
        self.assertEqual((within.returncode, within.stdout), (0, bare.stdout), within.stderr)

    def test_programs_that_are_no_file(self):
        self.same("python3", "program.py", files={"program.py": WITHOUT_A_FILE},
                  tells=["by descriptor", "by name", "4"])

    def test_shared_memory_semaphores_and_queues(self):
        self.same("python3", "program.py", files={"program.py": QUEUES},
                  tells=["b'shared'", "True 0", "7 b'message'"])

    def test_identity_and_limits(self):
        self.same_script(r"""
            id -u; id -g; ulimit -n; ulimit -u; ulimit -v; umask; nice; nproc; uname -sm; pwd
            python3 -c 'import os; print(os.sched_getaffinity(0), os.getloadavg() != ())'
            """, tells=["unlimited"])
