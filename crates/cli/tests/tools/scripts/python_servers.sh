# needs: python3 / python3
set -e
echo served > page
cat > serve.py <<'P'
import http.server, socket, socketserver, threading, urllib.request
handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = type("Server", (http.server.ThreadingHTTPServer,), {"address_family": family})((host, 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    name = "localhost" if family == socket.AF_INET else "[::1]"
    print(urllib.request.urlopen(f"http://{name}:{server.server_address[1]}/page").read())
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"udp", u.getsockname())
print(u.recv(9), socket.getaddrinfo("localhost", 80, socket.AF_INET)[0][4])
P
python3 serve.py
