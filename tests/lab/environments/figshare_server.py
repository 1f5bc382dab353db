"""A web server on this machine that stands for figshare: an article and its files."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

NAME = "OpenMLRandomBotResultsFinal_mlr.classif.{}.csv"
FILES = {
    NAME.format(each): f"{each} ".encode() * 200_000 for each in ("glmnet", "rpart", "xgboost")
}


class Served:
    """What the server answers: change `pages` to change it; `asked` lists the paths asked for."""

    def __init__(self, url: str):
        self.url = f"{url}/article"
        self.asked: list[str] = []
        listed = [
            {
                "name": name,
                "size": len(content),
                "download_url": f"{url}/{name}",
                "computed_md5": hashlib.md5(content).hexdigest(),
            }
            for name, content in FILES.items()
        ]
        self.listed = [*listed, {"name": "other.csv", "size": 1, "download_url": "x"}]
        self.pages = {f"/{name}": content for name, content in FILES.items()}
        self.publish()

    def publish(self) -> None:
        """Serve the article with the files as they are listed now."""
        self.pages["/article"] = json.dumps({"files": self.listed}).encode()


@contextmanager
def figshare() -> Iterator[Served]:
    """The server while it runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            served.asked.append(self.path)
            page = served.pages.get(self.path)
            if page is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Served(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
