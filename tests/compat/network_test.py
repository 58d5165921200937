"""What needs the loopback works under --net local: a development server and a browser."""
import re

import inside

PAGE = """<!doctype html><title>t</title><p id=p>before</p>
<script>document.getElementById('p').textContent = 'script ' + 6 * 7;</script>
"""

# The server says on standard output where it listens.
SERVE = r"""
exec 3< <(exec python3 -u -m http.server 0 --bind 127.0.0.1 2>/dev/null)
server=$!
read -r said <&3
port=$(sed 's/.* port \([0-9]*\) .*/\1/' <<<"$said")
trap 'kill $server' EXIT
"""

BROWSE = r"""
browse() {
    chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --no-first-run \
        --disable-background-networking --disable-component-update --dump-dom "$1" 2>log |
        grep -o 'id="p">[^<]*' || { tail -30 log >&2; false; }
}
"""


class Network(inside.Case):
    def test_development_server(self):
        self.need("curl")
        self.same_script(SERVE + r"""
            curl -sS --fail "http://127.0.0.1:$port/page.html" | cmp - page.html && echo served
            curl -sS -o /dev/null -w '%{http_code}\n' "http://localhost:$port/absent"
            """, files={"page.html": PAGE}, flags=["--net", "local"], tells=["served", "404"])

    def test_the_offline_tier_has_no_server(self):
        done = self.place.run("python3", "-m", "http.server", "0", "--bind", "127.0.0.1")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"PermissionError", done.stderr)

    def test_interfaces_can_be_listed(self):
        self.need("ip")
        out = self.inside("ip", "-o", "addr", flags=["--net", "local"])
        self.assertEqual(sorted(re.findall(r"inet6? (\S+)", out)), ["127.0.0.1/8", "127.0.1.1/8", "::1/128"])

    # glibc does not count 127.0.0.1 when it is asked for the families that are set up.
    def test_addresses_of_a_family_that_is_set_up_are_told(self):
        ask = "import socket; print(socket.getaddrinfo('localhost', 80, socket.AF_INET, 0, 0, socket.AI_ADDRCONFIG))"
        self.assertIn("127.0.0.1", self.inside("python3", "-c", ask, flags=["--net", "local"]))

    def test_headless_chromium(self):
        self.need("chromium")
        self.same_script(BROWSE + 'browse "file://$PWD/page.html"', files={"page.html": PAGE},
                         flags=["--net", "local"], tells=['id="p">script 42'],
                         timeout=2 * inside.PATIENCE)

    def test_headless_chromium_of_a_local_server(self):
        self.need("chromium")
        self.same_script(SERVE + BROWSE + 'browse "http://127.0.0.1:$port/page.html"',
                         files={"page.html": PAGE}, flags=["--net", "local"],
                         tells=['id="p">script 42'], timeout=2 * inside.PATIENCE)
