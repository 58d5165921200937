"""Opens and closes many connections to an echo server, half of them through the proxy.

    load.py HOST PORT COUNT AT_ONCE

Reads a line before each turn; the first turn is a short one. Prints how many words came back.
"""
import asyncio
import sys

HOST, PORT, COUNT, AT_ONCE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])


async def one(number):
    where = ("127.0.0.1", 61080) if number % 2 else (HOST, PORT)
    reader, writer = await asyncio.open_connection(*where)
    try:
        if number % 2:
            writer.write(f"CONNECT {HOST}:{PORT} HTTP/1.1\r\nHost: {HOST}:{PORT}\r\n\r\n".encode())
            if b" 200 " not in await reader.readuntil(b"\r\n\r\n"):
                return 0
        word = b"word %d" % number
        writer.write(word)
        return int(await reader.readexactly(len(word)) == word)
    finally:
        writer.close()


async def turn(count):
    numbers, good, told = iter(range(count)), 0, 0

    async def work():
        nonlocal good, told
        for number in numbers:
            try:
                echoed = await asyncio.wait_for(one(number), 60)
                good += echoed
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
                told += 1
                if told < 4:
                    print(f"{number}: {type(error).__name__} {error}", file=sys.stderr)
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    print(good, flush=True)


for amount in (4 * AT_ONCE, COUNT):
    sys.stdin.readline()
    asyncio.run(turn(amount))
sys.stdin.readline()
