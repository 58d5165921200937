"""How long a run takes to start does not depend on how much the workspace holds."""
import os
import statistics
import subprocess
import time

import inside

FILES = 300000
BOUND = 3  # a scan of all names takes several times as long as a whole start
LAUNCHES = 15

MAKE_TREE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int wanted = atoi(argv[2]);
    if (argc != 3 || chdir(argv[1]) != 0) return 1;
    char name[64];
    for (int i = 0; i < wanted; i++) {
        if (i % 1000 == 0) {
            snprintf(name, sizeof name, "%d", i / 1000);
            if (mkdir(name, 0755) != 0) return 2;
        }
        snprintf(name, sizeof name, "%d/%d", i / 1000, i);
        int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
        if (fd < 0 || close(fd) != 0) return 3;
    }
    return 0;
}
"""


class Workspace(inside.Case):
    def start_time(self):
        began = time.monotonic()
        self.inside("true")
        return time.monotonic() - began

    def test_three_hundred_thousand_files(self):
        self.need("gcc")
        maker = self.place.path("maker")
        subprocess.run(["/usr/bin/gcc", "-O1", "-x", "c", "-o", maker, "-"], check=True,
                       input=MAKE_TREE.encode())
        small, large = self.place.workspace, self.place.folder("large")
        subprocess.run([maker, large, str(FILES)], check=True)
        times = {small: [], large: []}
        for _ in range(LAUNCHES):  # in turns, so that a busy machine slows both
            for self.place.workspace in (small, large):
                times[self.place.workspace].append(self.start_time())
        ratio = statistics.median(times[large]) / statistics.median(times[small])
        print(f"{FILES} files: {statistics.median(times[large]) * 1000:.1f} ms, empty: "
              f"{statistics.median(times[small]) * 1000:.1f} ms, ratio {ratio:.2f}")
        self.assertLess(ratio, BOUND)
        # All of it is there.
        self.assertEqual(self.inside("sh", "-c", "ls -f 299 | wc -l; ls -f | wc -l"), "1002\n302\n")
        self.assertTrue(os.path.exists(os.path.join(large, "0", "0")))
