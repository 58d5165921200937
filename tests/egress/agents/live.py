"""Talks to the scene's live servers.

    live.py websocket|grpc|grpc-direct HOST:PORT
"""
import asyncio
import os
import ssl
import sys


async def websocket(where):
    import websockets
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    async with websockets.connect(f"wss://{where}", ssl=context, open_timeout=20) as connection:
        for word in ("one", "two"):
            await connection.send(word)
            print(await connection.recv())


def remote_procedure(where, direct):
    import grpc
    options = [("grpc.enable_http_proxy", 0)] if direct else []
    with grpc.secure_channel(where, grpc.ssl_channel_credentials(), options) as channel:
        print(channel.unary_unary("/glove.Test/Echo")(b"one", timeout=20).decode())
        print(b",".join(channel.unary_stream("/glove.Test/Count")(b"200", timeout=20))[-7:].decode())


way, target = sys.argv[1:]
try:
    if way == "websocket":
        asyncio.run(websocket(target))
    else:
        remote_procedure(target, way == "grpc-direct")
except Exception as error:  # pylint: disable=broad-except
    sys.exit(f"{target}: {error}")
