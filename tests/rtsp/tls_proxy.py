#!/usr/bin/env python3
"""TLS in front of a server that has none.

  tls_proxy.py CERTIFICATE KEY PORT     (PEM files; PORT: of the server, on this machine)

Prints "port N" when it serves on 127.0.0.1. Ends at the end of stdin.
"""

import asyncio
import ssl
import sys


async def carry(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def main():
    certificate, key, port = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def on_client(reader, writer):
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", int(port))
        await asyncio.gather(carry(reader, there_writer), carry(there_reader, writer))

    server = await asyncio.start_server(on_client, "127.0.0.1", 0, ssl=context)
    print("port", server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
