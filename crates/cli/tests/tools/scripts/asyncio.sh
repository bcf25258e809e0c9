# needs: python3 / python3
cat > a.py <<'P'
import asyncio
async def main():
    async def echo(r, w): w.write((await r.readline()).upper()); await w.drain(); w.close()
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
    w.write(b"tcp\n"); print(await r.readline())
    await asyncio.start_unix_server(echo, "sock")
    r, w = await asyncio.open_unix_connection("sock"); w.write(b"unix\n"); print(await r.readline())
    p = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1); print(await p.communicate(b"child"), p.returncode)
    print(await asyncio.gather(*(asyncio.to_thread(pow, 2, n) for n in range(5))))
asyncio.run(main())
P
python3 a.py
