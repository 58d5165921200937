"""A websocket and a gRPC server over TLS: each sends back what it gets.

    live_servers.py CERTIFICATE_AND_KEY
"""
import asyncio
import ssl
import sys
from concurrent import futures

import grpc
import websockets

import world


def remote_procedures(pem):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("glove.Test", {
        "Echo": grpc.unary_unary_rpc_method_handler(lambda request, _: b"echo " + request),
        "Count": grpc.unary_stream_rpc_method_handler(
            lambda request, _: (b"%d" % n for n in range(int(request))))}),))
    key, _, certificate = pem.partition(b"-----END PRIVATE KEY-----\n")
    key += b"-----END PRIVATE KEY-----\n"
    server.add_secure_port(f"{world.ADDRESSES[world.LIVE][0]}:{world.LIVE_RPC}",
                           grpc.ssl_server_credentials([(key, certificate)]))
    server.start()
    return server


async def sockets(file):
    async def echo(connection):
        async for message in connection:
            await connection.send("echo " + message)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    async with websockets.serve(echo, world.ADDRESSES[world.LIVE][0], world.LIVE_WEB, ssl=context):
        await asyncio.Future()


def main():
    file = sys.argv[1]
    with open(file, "rb") as stream:
        kept = remote_procedures(stream.read())
    asyncio.run(sockets(file))
    del kept


if __name__ == "__main__":
    main()
