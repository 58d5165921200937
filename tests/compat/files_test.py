"""Programs that lean on the file system work inside as outside."""
import inside

INOTIFY = r"""
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
os.mkdir("watched")
assert libc.inotify_add_watch(fd, b"watched", 0x100 | 0x8 | 0x200 | 0x80) > 0
open("watched/a", "w").close()
os.rename("watched/a", "watched/b")
os.unlink("watched/b")
seen = []
while len(seen) < 5:
    data, at = os.read(fd, 4096), 0
    while at < len(data):
        _, mask, _, size = struct.unpack_from("iIII", data, at)
        seen.append((hex(mask), data[at + 16:at + 16 + size].rstrip(b"\0").decode()))
        at += 16 + size
    if seen[-1][0] == "0x200":
        break
print(seen)
"""

LOCKS = r"""
import fcntl, os
with open("lock", "w") as file:
    for name, call in (("flock", fcntl.flock), ("record", fcntl.lockf)):
        call(file, fcntl.LOCK_EX)
        ready, go = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            with open("lock", "w") as other:
                try:
                    call(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.write(ready[1], b"got it\n")
                except BlockingIOError:
                    os.write(ready[1], b"busy\n")
                call(other, fcntl.LOCK_EX)
                os.write(ready[1], b"got it later\n")
            os._exit(0)
        print(name, os.read(ready[0], 100))
        call(file, fcntl.LOCK_UN)
        print(name, os.read(ready[0], 100))
        os.waitpid(child, 0)
"""

MEMORY = r"""
import mmap
SIZE = 1 << 30
area = mmap.mmap(-1, SIZE)
for at in range(0, SIZE, 1 << 16):
    area[at] = at >> 16 & 255
print(sum(area[at] for at in range(0, SIZE, 1 << 20)))
area.close()
with open("sparse", "w+b") as file:
    file.truncate(SIZE)
    view = mmap.mmap(file.fileno(), SIZE)
    view[SIZE - 4:] = b"last"
    view.flush()
    file.seek(-4, 2)
    print(file.read())
"""

ARCHIVES = r"""
mkdir tree; cd tree
echo one >a; ln a b; ln -s a link; mkdir -p d/e; chmod 750 d; printf '\0\377' >d/e/bytes
setfattr -n user.note -v kept a; setfattr -n user.dir -v too d
touch -d @1700000000 a d/e/bytes
cd ..
show() { (cd "$1"; stat -c '%n %h %a %s' a b d; getfattr -d --absolute-names a d; stat -c %Y a; readlink link
          [ a -ef b ] && echo one file; cmp d/e/bytes "$OLDPWD/tree/d/e/bytes" && echo same bytes); }
tar --xattrs -C tree -czf packed.tgz .
mkdir unpacked; tar --xattrs --xattrs-include='user.*' -C unpacked -xzf packed.tgz; show unpacked
rsync -aHX tree/ copied/; show copied
rsync -aHXn --itemize-changes tree/ copied/ | wc -l
cp -a tree again; show again
"""


class Files(inside.Case):
    def test_tar_and_rsync_with_hard_links_and_attributes(self):
        self.need("tar", "rsync", "setfattr", "getfattr")
        out = self.same_script(ARCHIVES, tells=["0", "1700000000"])
        self.assertEqual(out.count('user.note="kept"'), 3, out)
        self.assertEqual(out.count("one file"), 3, out)
        self.assertEqual(out.count("same bytes"), 3, out)

    def test_inotify(self):
        out = self.same("python3", "program.py", files={"program.py": INOTIFY})
        self.assertIn("('0x200', 'b')", out)

    def test_locks_between_processes(self):
        self.same("python3", "program.py", files={"program.py": LOCKS},
                  tells=["flock b'busy\\n'", "flock b'got it later\\n'", "record b'busy\\n'"])
        self.need("flock")
        self.same_script("exec 9>lock; flock 9; flock -n lock echo no || echo busy; flock -u 9; "
                         "flock -n lock echo free", tells=["busy", "free"])

    def test_a_lock_is_seen_across_the_boundary(self):
        # The workspace is the same file system on both sides, so a lock held outside counts inside.
        import fcntl
        with open(self.place.put("lock", ""), "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.inside("flock", "-n", "lock", "true", status=1)
            fcntl.flock(file, fcntl.LOCK_UN)
            self.inside("flock", "-n", "lock", "true")

    def test_mapping_a_gibibyte(self):
        self.same("python3", "program.py", files={"program.py": MEMORY}, tells=["b'last'"])

    def test_sqlite_with_a_write_ahead_log(self):
        self.need("sqlite3")
        self.same_script(r"""
            sqlite3 data.db 'pragma journal_mode=wal; create table t(n integer, w integer);'
            for w in 1 2 3; do
                { echo '.timeout 60000'; for n in $(seq 50); do echo "insert into t values($n, $w);"; done; } |
                    sqlite3 data.db &
            done
            wait
            sqlite3 data.db 'select count(*), sum(n) from t; pragma integrity_check;
                             pragma wal_checkpoint(truncate);'
            """, tells=["wal", "150|3825", "ok"])

    def test_perl_forks_and_pipes(self):
        self.need("perl")
        self.same("perl", "program.pl", files={"program.pl": r"""
use strict; use warnings; use POSIX (); use File::Temp 'tempfile'; $| = 1;
pipe(my $in, my $out) or die;
my $pid = fork // die;
if (!$pid) { close $in; print $out "from the child\n"; close $out; POSIX::_exit(6) }
close $out; print <$in>; waitpid $pid, 0; print $? >> 8, "\n";
open my $p, '-|', 'seq', '3' or die; print <$p>; close $p;
open my $q, '|-', 'tr a-z A-Z' or die; print $q "piped\n"; close $q;
local $SIG{ALRM} = sub { print "alarm\n" }; alarm 1; POSIX::pause();
my ($fh, $name) = tempfile(); print $fh "x"; close $fh; print -s $name, "\n";
print `echo backticks`;
system 'kill -KILL $$'; print $? & 127, "\n";
"""}, tells=["from the child", "6", "PIPED", "alarm", "backticks", "9"])
