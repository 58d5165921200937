"""Greets whoever connects to a port of the loopback. Says when it listens.

    greeter.py ADDRESS PORT
"""
import socket
import sys

family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.create_server((sys.argv[1], int(sys.argv[2])), family=family) as listener:
    print("listening", flush=True)
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"inside\n")
