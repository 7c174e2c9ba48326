"""A robot with scripts in all names, and a page that attacks a view from another origin."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import chasles

SCRIPT = "<img src=x onerror='window.owned=1'><script>window.owned=1</script>"

ATTACK = """
const PORT = %(port)d, TOKEN = "%(token)s", done = {};
const socket = (name, path) => new Promise((end) => {
  const link = new WebSocket(`ws://127.0.0.1:${PORT}/${path}`, ["viser-v%(version)s"]);
  link.onopen = () => { done[name] = "open"; link.close(); end(); };
  link.onerror = () => { done[name] = "refused"; end(); };
});
const read = async (name, path, options) => {
  try {
    const answer = await fetch(`http://127.0.0.1:${PORT}/${path}`, options);
    done[name] = (await answer.text()) === "" ? "opaque" : "read";
  } catch { done[name] = "refused"; }
};
const frame = (name, path) => new Promise((end) => {
  const made = document.createElement("iframe");
  made.src = `http://127.0.0.1:${PORT}/${path}`;
  made.onload = () => end();
  document.body.append(made);
});
Promise.all([
  socket("socket", ""), socket("socket with the token", TOKEN),
  read("fetch", "", {}), read("fetch with the token", TOKEN + "/", {}),
  read("blind fetch", TOKEN + "/", {mode: "no-cors"}), frame("frame", ""),
]).then(() => { window.done = done; });
"""
"""Attacks from a page of another origin, some of which use a leaked token."""


def robot() -> chasles.Robot:
    """Return a four-bar linkage that cannot turn fully, with scripts as names."""
    source = chasles.robots.four_bar(ground=1.0, crank=0.9, coupler=0.4, rocker=0.6).model.source

    def named(name: str | None) -> str:
        return f"{name}{SCRIPT}" if name else ""

    def renamed(joint: Any) -> Any:
        parent, child = named(joint.parent), named(joint.child)
        return replace(joint, name=named(joint.name), parent=parent, child=child)

    changed = replace(
        source,
        name=named(source.name),
        links=tuple(replace(link, name=named(link.name)) for link in source.links),
        joints=tuple(map(renamed, source.joints)),
        loops=tuple(map(renamed, source.loops)),
        independent=source.independent and tuple(map(named, source.independent)),
    )
    return chasles.Robot(changed)


@contextmanager
def site(page: str) -> Iterator[int]:
    """Serve a page with a script from another origin; yield the server's port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<!doctype html><body><script>{page}</script>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()
