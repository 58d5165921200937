"""Shells, and the programs that give a shell a terminal, work inside as outside."""
import inside

POSIX = r"""
name=world
cat <<HERE | tr a-z A-Z
hello $name, $((6 * 7))
HERE
cat <<'HERE'
raw $name
HERE
cat <<-HERE
	without the tab
	HERE
# Larger than a pipe, so the shell has to keep it in a file.
big=$(head -c 200000 /dev/zero | tr '\0' x)
cat <<HERE | wc -c
$big
HERE
( exit 3 ) || echo "status $?"
trap 'echo trapped; exit 7' TERM
kill -TERM $$
echo not reached
"""


class Shells(inside.Case):
    def test_bash(self):
        self.need("bash")
        self.same_script(POSIX, status=7, tells=["HELLO WORLD, 42", "200001", "trapped"])

    def test_bash_own_words(self):
        self.same_script(r"""
            read -r line <<<"a here string"; echo "$line"
            cat <(echo one) <(echo two)
            echo three > >(cat; echo four) ; wait $!
            coproc up { tr a-z A-Z; }
            echo coprocess >&"${up[1]}"; exec {up[1]}>&-; cat <&"${up[0]}"
            mapfile -t lines < <(seq 5); echo "${#lines[@]}"
            sleep 100 & kill $!; wait $! || echo "status $?"
            ulimit -c
            """, tells=["a here string", "two", "four", "COPROCESS", "status 143"])

    def test_dash(self):
        self.need("dash")
        self.same_script(POSIX, shell=("dash", "-u"), status=7, tells=["HELLO WORLD, 42", "trapped"])

    def test_zsh(self):
        self.need("zsh")
        self.same_script(POSIX, shell=("zsh", "-f"), status=7, tells=["HELLO WORLD, 42", "trapped"])
        self.same_script("cat =(echo in a file) <(echo in a pipe); print -l **/*.script",
                         shell=("zsh", "-f"), tells=["in a file", "in a pipe", "the.script"])

    def test_fish(self):
        self.need("fish")
        self.same_script(r"""
            set name world
            echo "hello $name
second line" | string upper
            cat (echo in a file | psub -f) (echo in a pipe | psub)
            function double; math 2 x $argv; end
            double 21
            begin; echo out; echo err >&2; end 2>| cat
            false; or echo "status $status"
            exit 9
            """, shell=("fish", "--no-config"), status=9,
                         tells=["HELLO WORLD", "SECOND LINE", "in a file", "42", "status 1"])

    def test_script_gives_a_terminal(self):
        self.need("script")
        out = self.same("script", "-qec", "test -t 0 && test -t 1 && stty size && echo terminal; exit 5",
                        "/dev/null", status=5)
        self.assertIn("terminal", out)

    def test_tmux(self):
        self.need("tmux")
        self.same_script(r"""
            t() { tmux -f /dev/null -L "glove-test-$$" "$@"; }
            export -f t
            t new-session -d -s one 'tty >/dev/null && echo in a pane >said; tmux wait-for -S said; exec cat'
            t wait-for said
            t split-window -d -t one 'echo in another >more; tmux wait-for -S more; exec cat'
            t wait-for more
            t list-panes -t one | wc -l
            cat said more
            t kill-server
            """, tells=["in a pane", "in another", "2"])
