"""Takes places at the proxy and keeps them, while one more client wants to be served.

    crowd.py HOST ECHO_PORT WEB_PORT HALF_OPEN SLOW HELD

HALF_OPEN connections never end their request, SLOW ones never read their answer, and HELD ones have a
tunnel that is silent. Prints the seconds that one more needed, or why it had none; then the same after
one of the held ones has been closed.
"""
import sys
import time

import ways

HOST, ECHO, WEB, HALF_OPEN, SLOW, HELD = sys.argv[1], *map(int, sys.argv[2:])
kept = []


def tried(seconds):
    begun = time.monotonic()
    ways.PATIENCE = seconds
    outcome = ways.echoed("connect", HOST.encode(), ECHO)
    print(f"{time.monotonic() - begun:.2f}" if outcome == "echo" else outcome, flush=True)


held = [ways.connect(HOST.encode(), ECHO) for _ in range(HELD)]
for number in range(HALF_OPEN):
    connection = ways.proxy()
    connection.sendall([b"", b"C", b"CONNECT a:", b"GET http://", b"\5", b"\5\1\0"][number % 6])
    kept.append(connection)
for _ in range(SLOW):
    connection = ways.proxy()
    connection.sendall(f"GET http://{HOST}:{WEB}/drip HTTP/1.1\r\nHost: {HOST}:{WEB}\r\n\r\n".encode())
    kept.append(connection)
tried(5 if HELD else 60)
if held:
    held.pop().close()
    tried(20)
