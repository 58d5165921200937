"""The made-up internet of the egress tests: who is where. Both sides of the scene read this table.

All names end in `.example`, all public addresses are unicast addresses that no registry reserves. No
packet for them ever leaves the scene: see scene.py.
"""

HOST = "89.16.0.2"                      # the test host's public-looking address
HOST6 = "2a01:7e00:1::2"
LAN = "10.77.0.2"                       # and a private one
GATEWAY, GATEWAY6, LAN_GATEWAY = "89.16.0.1", "2a01:7e00:1::1", "10.77.0.1"
RESOLVER, RESOLVER6 = "93.184.216.53", "2606:2800:220::53"

FILES = "files.open.example"            # https, http, HTTP/2, echo
GIT = "git.open.example"                # https and ssh
PACKAGES = "packages.open.example"      # registries of four kinds
DATA = "data.open.example"              # redis, PostgreSQL, rsync
LIVE = "live.open.example"              # websockets, gRPC
SIX = "six.open.example"                # has an IPv6 address only
DEEP = "deep.example"                   # .deep.example and names below it
CLOSED = "closed.example"               # works as well as the others; no test allows it
CANARY = "93.184.216.66"                # its address
CANARY6 = "2606:2800:220::66"
FRONT = "front.open.example"            # another name of the address of FILES

HTTP, HTTPS, HTTP2, ECHO, SSH = 80, 443, 8443, 7007, 2222
REDIS, POSTGRES, RSYNC, LIVE_WEB, LIVE_RPC = 6379, 5432, 8730, 8444, 8445
# Where a listener takes every address there is, so that a stray connection is seen to arrive.
OPEN_PORTS = (HTTP, HTTPS, ECHO)

ADDRESSES = {
    FILES: ["93.184.216.10", "2606:2800:220::10"],
    FRONT: ["93.184.216.10"],
    GIT: ["93.184.216.12"],
    PACKAGES: ["93.184.216.13"],
    DATA: ["93.184.216.14"],
    LIVE: ["93.184.216.15"],
    SIX: ["2606:2800:220::16"],
    DEEP: ["93.184.216.17"],
    "a." + DEEP: ["93.184.216.18"],
    "b.c." + DEEP: ["93.184.216.19"],
    "xn--bcher-kva.open.example": ["93.184.216.20"],
    "with_underscore.open.example": ["93.184.216.21"],
    # The first address answers nothing: its packets are dropped.
    "half.open.example": ["2606:2800:dead::1", "93.184.216.22"],
    "dead.open.example": ["93.184.217.1"],
    CLOSED: [CANARY, CANARY6],
}
SILENT = ("93.184.217.0/24", "2606:2800:dead::/48")

# Names that resolve to what no public name may lead to. The key is the first label.
TRAPS = {
    "loopback": ["127.0.0.1"], "loopback-high": ["127.8.9.10"], "loopback-six": ["::1"],
    "metadata": ["169.254.169.254"], "ten": ["10.77.0.66"], "own-private": [LAN],
    "own": [HOST], "own-six": [HOST6], "twelve": ["172.16.4.4"], "home": ["192.168.1.1"],
    "carrier": ["100.64.0.1"], "zero": ["0.0.0.0"], "this-network": ["0.1.2.3"],
    "broadcast": ["255.255.255.255"], "multicast": ["224.0.0.251"], "future": ["240.0.0.1"],
    "benchmark": ["198.18.0.1"], "documentation": ["192.0.2.1"], "protocol": ["192.0.0.8"],
    "unspecified-six": ["::"], "mapped": ["::ffff:127.0.0.1"], "mapped-public": ["::ffff:93.184.216.66"],
    "compatible": ["::7f00:1"], "nat64": ["64:ff9b::7f00:1"], "nat64-local": ["64:ff9b:1::7f00:1"],
    "six-to-four": ["2002:7f00:1::"], "teredo": ["2001:0:7f00:1::80ff:fffe"],
    "unique-local": ["fd00::1"], "link-local": ["fe80::1"], "multicast-six": ["ff02::1"],
    "documentation-six": ["2001:db8::1"], "discard": ["100::1"],
    # One good address does not excuse a bad one's being dialled.
    "mixed": ["127.0.0.1", "93.184.216.10"],
}
ADDRESSES.update({label + ".trap.example": found for label, found in TRAPS.items()})
# Answers differ from query to query: public first, then the loopback; and the other way round.
REBINDING = {
    "rebind.trap.example": [["93.184.216.10"], ["127.0.0.1"]],
    "flip.trap.example": [["127.0.0.1"], ["93.184.216.10"]],
}
ALIASES = {
    "alias.open.example": FILES,
    "alias.trap.example": "loopback.trap.example",
}

# Has more addresses than one datagram holds.
HUGE = "huge.open.example"
ADDRESSES[HUGE] = [f"93.184.218.{n}" for n in range(1, 201)]

# What may be reached in an escape's allowed twin; everything else that arrives is an escape.
KNOWN = {address for name, found in ADDRESSES.items()
         if name.endswith((".open.example", DEEP)) for address in found}
