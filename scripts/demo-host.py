"""The host's side of scripts/demo: what a contained program must not reach.

    demo-host.py FOLDER MARKER

Listens on a port of 127.0.0.1, on a socket in FOLDER and on an abstract socket, takes SIGUSR1, and
appends to FOLDER/reached a line for each of them that somebody reached. Its command line carries
MARKER for others to find. Prints its port when all is ready and ends when its standard input does.
"""
import os
import selectors
import signal
import socket
import sys


def note(folder, word):
    with open(os.path.join(folder, "reached"), "a", encoding="utf-8") as file:
        file.write(word + "\n")


def listener(family, address):
    server = socket.socket(family, socket.SOCK_STREAM)
    server.bind(address)
    server.listen()
    return server


def main():
    folder, marker = sys.argv[1], sys.argv[2]
    signal.signal(signal.SIGUSR1, lambda *_: note(folder, "signal"))
    port = listener(socket.AF_INET, ("127.0.0.1", 0))
    servers = {
        port: "port",
        listener(socket.AF_UNIX, os.path.join(folder, "socket")): "path_socket",
        listener(socket.AF_UNIX, "\0" + marker): "abstract_socket",
    }
    watch = selectors.DefaultSelector()
    for server in servers:
        watch.register(server, selectors.EVENT_READ)
    watch.register(sys.stdin, selectors.EVENT_READ)
    print(port.getsockname()[1], flush=True)
    while True:
        for key, _ in watch.select():
            if key.fileobj is sys.stdin:
                return
            peer, _ = key.fileobj.accept()
            note(folder, servers[key.fileobj])
            peer.close()


main()
