"""Python's processes, sockets, semaphores and virtual environments work inside as outside."""
import inside

ASYNCIO = r"""
import asyncio, socket, sys

async def answer(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()

async def ask(reader, writer):
    writer.write(b"hello\n")
    print((await reader.readline()).decode().strip())
    writer.close()
    await writer.wait_closed()

async def main():
    program = "import sys; data = sys.stdin.read(); print(len(data)); sys.exit(3)"
    children = [await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE) for _ in range(4)]
    for child, (out, _) in zip(children, await asyncio.gather(
            *(child.communicate(b"x" * 300000) for child in children))):
        print(out.decode().strip(), child.returncode)
    server = await asyncio.start_unix_server(answer, path="socket")
    await ask(*await asyncio.open_unix_connection("socket"))
    server.close()
    print(await asyncio.to_thread(sum, range(1000)))
    for host in sys.argv[1:]:
        server = await asyncio.start_server(answer, host, 0)
        await ask(*await asyncio.open_connection(*server.sockets[0].getsockname()[:2]))
        server.close()
    if sys.argv[1:]:
        receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "ab")
        receiver.bind(("127.0.0.1", 0))
        sender.sendto(b"datagram", receiver.getsockname())
        print(receiver.recv(100).decode())

asyncio.run(main())
"""

MULTIPROCESSING = r"""
import multiprocessing as mp
from multiprocessing import shared_memory
import concurrent.futures

def work(lock, total, queue, number):
    for _ in range(200):
        with lock:
            total.value += 1
    queue.put(number)

def square(number):
    return number * number

def main():
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        lock, total, queue = context.Lock(), context.Value("i", 0, lock=False), context.Queue()
        workers = [context.Process(target=work, args=(lock, total, queue, n)) for n in range(4)]
        for worker in workers:
            worker.start()
        said = sorted(queue.get() for _ in workers)
        for worker in workers:
            worker.join()
        print(method, said, total.value, [worker.exitcode for worker in workers])
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(square, range(8))))
    block = shared_memory.SharedMemory(create=True, size=1 << 20)
    block.buf[:3] = b"abc"
    view = shared_memory.SharedMemory(block.name)
    print(bytes(view.buf[:3]))
    view.close()
    block.close()
    block.unlink()

if __name__ == "__main__":
    main()
"""


class Python(inside.Case):
    def test_asyncio_with_unix_sockets_and_children(self):
        self.same("python3", "program.py", files={"program.py": ASYNCIO},
                  tells=["300000 3", "HELLO", "499500"])

    def test_asyncio_on_the_loopback(self):
        out = self.same("python3", "program.py", "127.0.0.1", "::1", files={"program.py": ASYNCIO},
                        flags=["--net", "local"], tells=["datagram"])
        self.assertEqual(out.count("HELLO"), 3)

    def test_multiprocessing(self):
        self.same("python3", "program.py", files={"program.py": MULTIPROCESSING},
                  tells=[f"{method} [0, 1, 2, 3] 800 [0, 0, 0, 0]"
                         for method in ("fork", "spawn", "forkserver")])

    def test_virtual_environment(self):
        self.same_script(r"""
            python3 -m venv made
            made/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'
            made/bin/pip --version | cut -d' ' -f1
            . made/bin/activate; command -v python
            """, tells=["True", "pip"])

    def test_pseudo_terminal(self):
        self.same("python3", "-c", "import pty; pty.spawn(['sh', '-c', 'test -t 0 && echo terminal'])")
