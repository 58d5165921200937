"""Real programs reach the permitted destination, each in its own way, and are told of the other one.

Every test runs one script inside with both halves: what is permitted works, and the same command for
a destination that works as well but is not permitted fails and names it.
"""
import os
import re

import egress_case
import inside
import world

CLOSED = world.CLOSED
HERE = egress_case.PROGRAMS
GRANT_HERE = [HERE]


def at(name, port=world.HTTPS):
    return world.ADDRESSES[name][0], port


class Programs(egress_case.Case):
    def both(self, rules, permitted, other, tells, *, name=CLOSED, audited=None, read=(),
             files=None, terminal=False):
        """`permitted` and `other` are shell scripts; `tells` is what the first one prints. `audited`
        is the destination on record as refused; a name that is only looked up never gets that far.
        `terminal` is for programs that keep the destination to themselves: then glove names it."""
        for path, text in (files or {}).items():
            self.place.put(path, text)
        script = (f"set -eu\n{permitted}\necho PERMITTED-DONE\n"
                  f"if (\n{other}\n) >other.out 2>&1; then echo OTHER-DONE; fi\ncat other.out >&2\n")
        run = self.run_on_terminal if terminal else self.run_with
        done = run(rules, "bash", "-c", script, read=read)
        note = f"{done}\n{self.egress()}"
        for text in [tells] if isinstance(tells, str) else tells:
            self.assertIn(text, done.out, note)
        self.assertIn("PERMITTED-DONE", done.out, note)
        self.assertNotIn("OTHER-DONE", done.out, note)
        self.assertIn(name, done.err, note)
        if terminal:
            self.assertIn(f"glove: {audited} was refused; --egress-allow ", done.err, note)
        self.assert_untouched(note)
        for rule in rules:
            tool = rule.partition(",")[0] if re.search(r":\d+", rule) else f"{rule}:443"
            if not tool.startswith(".") and "/" not in tool:
                self.assert_allowed(tool, note)
        if audited:
            self.assert_refused(audited, note)
        return done

    # -- web clients --

    def test_curl(self):
        self.need("curl")
        egress_case.ask("start", "http2")
        fetch = "curl -sS --fail --max-time 20"
        files = world.FILES
        self.both(
            [files, f"{files}:80", f"{files}:8443", world.SIX],
            f"{fetch} https://{files}/hello; {fetch} http://{files}/hello\n"
            f"{fetch} --http2 https://{files}:8443/\n{fetch} https://{world.SIX}/hello\n"
            f"{fetch} https://{files}/bytes/3000000 | wc -c",
            f"{fetch} https://{CLOSED}/hello",
            [f"hello from {files}\n" * 2, "over HTTP/2.0", f"hello from {world.SIX}", "3000000"],
            terminal=True, audited=f"{CLOSED}:443")

    def test_curl_over_plain_http(self):
        done = self.both([f"{world.FILES}:80"], f"curl -sS --fail http://{world.FILES}/hello",
                         f"curl -sS --fail -v http://{CLOSED}/hello", f"hello from {world.FILES}",
                         audited=f"{CLOSED}:80")
        self.assertRegex(done.err, "HTTP/1.1 403")

    def test_curl_over_socks(self):
        fetch = "curl -sS --fail --max-time 20 --socks5-hostname 127.0.0.1:61080"
        self.both([world.FILES, f"{world.FILES}:80"],
                  f"{fetch} https://{world.FILES}/hello; {fetch} http://{world.FILES}/hello",
                  f"{fetch} https://{CLOSED}/hello", f"hello from {world.FILES}\n" * 2,
                  audited=f"{CLOSED}:443")

    def test_curl_without_a_proxy(self):
        egress_case.ask("start", "http2")
        fetch = "curl -sS --fail --max-time 20 --noproxy '*'"
        files = world.FILES
        self.both([files, f"{files}:80", f"{files}:8443", world.SIX, f".{world.DEEP}"],
                  f"{fetch} https://{files}/hello; {fetch} http://{files}/hello\n"
                  f"{fetch} https://{files}:8443/\n{fetch} https://{world.SIX}/hello\n"
                  f"{fetch} https://{world.DEEP}/hello; {fetch} https://a.{world.DEEP}/hello\n"
                  f"{fetch} https://b.c.{world.DEEP}/hello",
                  f"{fetch} https://{CLOSED}/hello",
                  [f"hello from {files}\n" * 2, "over HTTP/2.0", f"hello from {world.SIX}",
                   f"hello from {world.DEEP}", f"hello from a.{world.DEEP}",
                   f"hello from b.c.{world.DEEP}"])

    def test_curl_of_addresses(self):
        fetch = "curl -sS --fail --max-time 20"
        four, six = world.ADDRESSES[world.FILES]
        self.both([f"{four}:80", f"[{six}]:80", "93.184.216.16/28:80"],
                  f"{fetch} http://{four}/hello; {fetch} http://[{six}]/hello\n"
                  f"{fetch} http://93.184.216.17/hello",
                  f"{fetch} http://{world.CANARY}/hello",
                  [f"hello from {four}", f"hello from [{six}]", "hello from 93.184.216.17"],
                  name=world.CANARY, terminal=True, audited=f"{world.CANARY}:80")

    def test_a_name_whose_first_address_is_silent(self):
        self.both(["half.open.example"], "curl -sS --fail --max-time 30 https://half.open.example/hello",
                  f"curl -sS https://{CLOSED}/hello", "hello from half.open.example",
                  terminal=True, audited=f"{CLOSED}:443")

    def test_names_that_need_a_longer_look(self):
        """An alias of another name, and an answer that does not fit into one datagram."""
        self.both(["alias.open.example", f"{world.HUGE}:80"],
                  "curl -sS --fail --max-time 20 https://alias.open.example/hello\n"
                  f"curl -sS --fail --max-time 20 http://{world.HUGE}/hello",
                  f"curl -v -sS --fail http://{CLOSED}/hello",
                  f"hello from alias.open.example\nhello from {world.HUGE}\n", audited=f"{CLOSED}:80")
        self.assertIn("tcp", {each["transport"] for each in egress_case.ask("record")["queries"]})

    def test_what_cannot_be_reached(self):
        """A permitted destination that fails is told apart from one that is refused."""
        destinations = ["gone.open.example:80", "dead.open.example:80", f"{world.FILES}:9"]
        done = self.script([*destinations, f"{world.FILES}:80"], "".join(
            f"curl -sS --max-time 40 -o /dev/null -w '%{{http_code}}\\n' http://{where}/hello\n"
            for where in (*destinations, world.FILES)), timeout=120)
        self.assertRegex(done.out, "^(50[0-9]\n){3}200\n$", done)
        for where in destinations:
            self.assertEqual([status for _, status in self.egress(where)], ["pending", "transport_error"])
        self.assert_untouched()

    def test_servers_of_its_own(self):
        """The loopback inside stays the command's own, and is not asked for through the proxy."""
        done = self.script([world.FILES], """
            exec 3< <(exec python3 -u -m http.server 0 --bind 127.0.0.1 2>/dev/null)
            server=$!
            read -r said <&3
            port=$(sed 's/.* port \\([0-9]*\\) .*/\\1/' <<<"$said")
            echo own >page
            curl -sS --fail http://127.0.0.1:$port/page http://localhost:$port/page
            python3 -c "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())" \
                http://localhost:$port/page
            kill $server""")
        self.assertEqual(done.out.split(), ["own"] * 3, done)
        self.assertEqual((self.egress(), self.left()), ([], []))

    def test_wget(self):
        self.need("wget")
        fetch = f"wget -q -O - --tries=1 --timeout=20 --ca-certificate={egress_case.CA}"
        self.both([world.FILES, f"{world.FILES}:80"],
                  f"{fetch} https://{world.FILES}/hello; {fetch} http://{world.FILES}/hello\n"
                  f"{fetch} --no-proxy https://{world.FILES}/hello",
                  f"{fetch.replace('-q', '-nv')} https://{CLOSED}/hello",
                  f"hello from {world.FILES}\n" * 3, terminal=True, audited=f"{CLOSED}:443")

    # -- git --

    def test_git_over_https(self):
        self.need("git")
        self.both([world.GIT],
                  f"git clone -q https://{world.GIT}/git/glove.git; cd glove; cat README\n"
                  "git config user.name n; git config user.email n@open.example; date +%N >word\n"
                  "git add word; git commit -q -m second; git push -q; git log --oneline origin/main | wc -l",
                  f"git clone https://{CLOSED}/git/glove.git other", ["a repository", "\n2\n"],
                  audited=f"{CLOSED}:443")

    def test_git_over_ssh(self):
        self.need("git", "ssh")
        egress_case.ask("start", "ssh")

        def scene(name):
            return os.path.join(egress_case.FOLDER, name)

        with open(scene("ssh_user"), encoding="utf-8") as file:
            user = file.read()
        repository = scene("data/web/git/glove.git")
        self.both([f"{world.GIT}:{world.SSH}"],
                  f"install -m 600 {scene('ssh_user_key')} key\n"
                  f"sed 's/^/[{world.GIT}]:{world.SSH} /' {scene('ssh_host_key.pub')} >known\n"
                  "export GIT_SSH_COMMAND=\"ssh -F /dev/null -i $PWD/key -o UserKnownHostsFile=$PWD/known"
                  " -o StrictHostKeyChecking=yes -o BatchMode=yes\"\n"
                  f"git clone -q ssh://{user}@{world.GIT}:{world.SSH}{repository}; cat glove/README",
                  f"git clone -q ssh://{user}@{CLOSED}:{world.SSH}{repository} other", "a repository",
                  read=[scene("ssh_user_key"), scene("ssh_host_key.pub")])

    # -- package managers --

    def test_npm(self):
        self.need("npm")
        install = ("npm install --no-audit --no-fund --no-update-notifier --fetch-retries=0"
                   f" --cafile={egress_case.CA} --registry")
        self.both([world.PACKAGES], f"{install} https://{world.PACKAGES}/npm left-glove\n"
                  "node -e 'console.log(require(\"left-glove\"))'",
                  f"{install} https://{CLOSED}/npm other-glove", "left glove",
                  files={"package.json": "{}"}, audited=f"{CLOSED}:443")

    def test_pip(self):
        install = "python3 -m pip --disable-pip-version-check --no-cache-dir --retries 0 install -q --no-deps"
        self.both([world.PACKAGES],
                  f"{install} --target lib -i https://{world.PACKAGES}/pypi/simple right-glove\n"
                  "PYTHONPATH=lib python3 -c 'import right_glove; print(right_glove.WORD)'",
                  f"{install} --target other -i https://{CLOSED}/pypi/simple right-glove", "right glove",
                  terminal=True, audited=f"{CLOSED}:443")

    def test_cargo(self):
        self.need("cargo")
        # Before 1.68 the sparse protocol hid behind a switch.
        self.both([world.PACKAGES],
                  "export CARGO_HOME=$PWD/home RUSTC_BOOTSTRAP=1 CARGO_NET_RETRY=0\n"
                  "sparse=; case $(cargo --version) in 'cargo 1.6'[0-7].*) sparse='-Z sparse-registry';; esac\n"
                  "cargo $sparse fetch -q; cargo $sparse build -q --offline; target/debug/hand",
                  f"sed -i s/{world.PACKAGES}/{CLOSED}/ home/config.toml; rm -rf home/registry Cargo.lock\n"
                  "cargo $sparse fetch", "the thumb", terminal=True, audited=f"{CLOSED}:443", files={
                      "Cargo.toml": '[package]\nname = "hand"\nversion = "1.0.0"\nedition = "2021"\n'
                                    '[dependencies]\nthumb = { version = "1", registry = "scene" }\n',
                      "src/main.rs": 'fn main() { println!("the {}", thumb::word()); }\n',
                      "home/config.toml":
                          f'[registries.scene]\nindex = "sparse+https://{world.PACKAGES}/cargo/"\n'})

    def test_apt(self):
        self.need("apt-get", "dpkg-deb")
        settings = ("Dir \"{0}/\"; Dir::State \"{0}/state\"; Dir::Cache \"{0}/cache\"; Dir::Log \"{0}\";\n"
                    "Dir::State::status \"{0}/status\"; Dir::Etc \"{0}/etc\"; APT::Sandbox::User \"\";\n"
                    "Dir::Bin::methods \"/usr/lib/apt/methods\"; Acquire::Retries \"0\";\n"
                    "Acquire::https::CaInfo \"{1}\"; Acquire::Languages \"none\";\n").format(
                        self.place.workspace, egress_case.CA)
        self.both([world.PACKAGES],
                  "mkdir -p state/lists/partial cache/archives/partial etc/apt.conf.d etc/preferences.d\n"
                  "export APT_CONFIG=$PWD/settings; apt-get update; apt-get download mitten\n"
                  "dpkg-deb --fsys-tarfile mitten*.deb | tar -xO ./usr/share/mitten/word",
                  f"sed -i s/{world.PACKAGES}/{CLOSED}/ etc/sources.list; apt-get update --error-on=any",
                  "\nmitten\n", audited=f"{CLOSED}:443", files={
                      "settings": settings, "status": "",
                      "etc/sources.list": f"deb [trusted=yes] https://{world.PACKAGES}/apt ./\n"})

    # -- languages --

    def test_node(self):
        node, fetch = inside.NODE, os.path.join(HERE, "fetch.mjs")
        url = f"https://{world.FILES}/hello"
        grants = [*GRANT_HERE, os.path.dirname(os.path.dirname(os.path.realpath(node)))]
        self.both([world.FILES],
                  f"{node} {fetch} fetch {url}; {node} {fetch} get {url}\n"
                  f"env -u NODE_USE_ENV_PROXY {node} {fetch} fetch {url}\n"
                  f"env -u NODE_USE_ENV_PROXY {node} {fetch} get {url}",
                  f"if env -u NODE_USE_ENV_PROXY {node} {fetch} get https://{CLOSED}/hello; then exit 0; fi\n"
                  f"{node} {fetch} fetch https://{CLOSED}/hello",
                  f"200 hello from {world.FILES}\n\n" * 4, read=grants, audited=f"{CLOSED}:443")

    def test_python(self):
        fetch = f"/usr/bin/python3 {HERE}/fetch.py"
        url = f"https://{world.FILES}/hello"
        self.both([world.FILES, f"{world.FILES}:80"],
                  f"for way in requests urllib direct; do {fetch} $way {url}; "
                  f"{fetch} $way http://{world.FILES}/hello; done",
                  f"for way in direct urllib requests; do"
                  f" if {fetch} $way https://{CLOSED}/hello; then exit 0; fi; done; exit 1",
                  f"hello from {world.FILES}\n\n" * 6, read=GRANT_HERE, audited=f"{CLOSED}:443")

    def test_java(self):
        self.need("java")
        fetch = f"java -XX:TieredStopAtLevel=1 {HERE}/Fetch.java {egress_case.CA}"
        self.both([world.FILES], f"{fetch} https://{world.FILES}/hello", f"{fetch} https://{CLOSED}/hello",
                  f"200 hello from {world.FILES}", read=GRANT_HERE, terminal=True, audited=f"{CLOSED}:443")

    # -- data bases and other protocols --

    def test_postgres(self):
        self.need("psql")
        egress_case.ask("start", "postgres")
        query = "psql -U glove -At -c 'select 6 * 7' -h"
        self.both([f"{world.DATA}:{world.POSTGRES}"], f"{query} {world.DATA} postgres",
                  f"{query} {CLOSED} postgres", "42\n")

    def test_redis(self):
        self.need("redis-cli")
        egress_case.ask("start", "redis")
        self.both([f"{world.DATA}:{world.REDIS}"],
                  f"redis-cli -h {world.DATA} set word glove; redis-cli -h {world.DATA} get word",
                  f"redis-cli -h {CLOSED} get word", "OK\nglove\n")

    def test_rsync(self):
        self.need("rsync")
        egress_case.ask("start", "rsync")
        where = f"{world.DATA}:{world.RSYNC}"
        self.both([where],
                  f"rsync rsync://{where}/files/word direct; cat direct\n"
                  f"RSYNC_PROXY=127.0.0.1:61080 rsync rsync://{where}/files/word by-proxy; cat by-proxy",
                  f"if rsync rsync://{CLOSED}:{world.RSYNC}/files/word .; then exit 0; fi\n"
                  f"RSYNC_PROXY=127.0.0.1:61080 rsync rsync://{CLOSED}:{world.RSYNC}/files/word .",
                  "from rsync\nfrom rsync\n", audited=f"{CLOSED}:{world.RSYNC}")

    def test_websockets(self):
        egress_case.ask("start", "live")
        talk = f"/usr/bin/python3 {HERE}/live.py websocket"
        self.both([f"{world.LIVE}:{world.LIVE_WEB}"], f"{talk} {world.LIVE}:{world.LIVE_WEB}",
                  f"{talk} {CLOSED}:{world.LIVE_WEB}", "echo one\necho two\n", read=GRANT_HERE)

    def test_grpc(self):
        egress_case.ask("start", "live")
        talk = f"/usr/bin/python3 {HERE}/live.py"
        where = f"{world.LIVE}:{world.LIVE_RPC}"
        self.both([where], f"{talk} grpc {where}; {talk} grpc-direct {where}",
                  f"if {talk} grpc-direct {CLOSED}:{world.LIVE_RPC}; then exit 0; fi\n"
                  f"{talk} grpc {CLOSED}:{world.LIVE_RPC}", "echo one\n198,199\n" * 2,
                  read=GRANT_HERE, audited=f"{CLOSED}:{world.LIVE_RPC}")

    def test_name_service(self):
        """The names are all that exists, each at an address of its own."""
        names = [world.FILES, world.GIT, world.DEEP, f"a.{world.DEEP}"]
        done = self.script([world.FILES, world.GIT, f".{world.DEEP}"],
                           f"for name in {' '.join(names)}; do getent ahosts $name; done; "
                           f"getent ahosts {CLOSED} || echo absent")
        found = {line.split()[0] for line in done.out.splitlines() if "STREAM" in line}
        self.assertEqual(len(found), 4, done)
        for address in found:
            self.assertRegex(address, r"^127\.64\.\d+\.\d+$")
        self.assertTrue(done.out.endswith("absent\n"), done)

    def test_names_for_those_who_ask_for_one_family_that_is_set_up(self):
        """glibc takes a machine with no other address than 127.0.0.1 for one without IPv4."""
        done = self.script([world.FILES], f"getent ahostsv4 {world.FILES}; wget -4 -q -O - --no-proxy "
                           f"--ca-certificate={egress_case.CA} https://{world.FILES}/hello")
        self.assertRegex(done.out, r"^127\.64\.")
        self.assertIn("hello from", done.out, done)


if __name__ == "__main__":
    inside.main()
