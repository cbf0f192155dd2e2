"""The configuration of deploy/, served by a real nginx in front of two real replicas, with fifty visitors."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from attenscope.viz.serving.server import read_option_variables
from bench.visitor import Visitor
from tests.browser.conftest import ROOT, free_port, wait_until_healthy

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
VISITORS = 50
ADDRESS = "sentence=She+reads+a+book.&head=2"


class Deployment(NamedTuple):
    url: str
    replicas: dict[str, subprocess.Popen[bytes]]


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    if not Path(NGINX).is_file():
        pytest.skip("no nginx found: install it (apt install nginx-light)")
    ports = {name: free_port() for name in "ab"}
    port = free_port()
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    for name, own in ports.items():
        text = text.replace(f"app-{name}:8501", f"127.0.0.1:{own}")
    text = text.replace("listen 8080", f"listen 127.0.0.1:{port}")
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(f"daemon off;\npid {tmp_path}/pid;\nerror_log {tmp_path}/error.log;\n{text}")
    replicas = {name: replica(own, tmp_path / f"{name}.log") for name, own in ports.items()}
    nginx = subprocess.Popen([NGINX, "-c", str(configuration), "-p", str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        for name, process in replicas.items():
            wait_until_healthy(f"http://127.0.0.1:{ports[name]}/attenscope", process, tmp_path / f"{name}.log")
        wait_until_healthy(f"http://127.0.0.1:{port}/attenscope", nginx, tmp_path / "error.log")
        yield Deployment(f"http://127.0.0.1:{port}/attenscope", replicas)
    finally:
        for process in (nginx, *replicas.values()):
            process.send_signal(signal.SIGTERM)
            process.wait(20)
    for name in replicas:
        said = (tmp_path / f"{name}.log").read_text(errors="replace")
        assert f'File "{ROOT / "viz"}' not in said, said


def compose_variables() -> dict[str, str]:
    """What compose.yaml says to Streamlit."""
    text = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    return dict(re.findall(r'^ +(STREAMLIT_\w+): "?([^"\s]+)', text, re.MULTILINE))


def replica(port: int, log: Path) -> subprocess.Popen[bytes]:
    options = {"port": port, "fileWatcherType": "none", "headless": "true"}
    command = [part for name, value in options.items() for part in (f"--server.{name}", str(value))]
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "viz", *command],
            cwd=ROOT,
            env=os.environ | compose_variables(),
            stdout=output,
            stderr=output,
        )


def test_the_variables_of_the_containers_are_options() -> None:
    options = {"server.baseUrlPath": "attenscope", "server.allowedHosts": ["localhost"]}
    assert read_option_variables(compose_variables()) == options


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_one_replica_is_killed_and_nobody_loses_the_view(deployment: Deployment) -> None:
    with ThreadPoolExecutor(VISITORS) as pool, ExitStack() as stay:
        visitors = [
            stay.enter_context(one) for one in pool.map(lambda _: Visitor(deployment.url, 300), range(VISITORS))
        ]
        list(pool.map(lambda one: one.open(ADDRESS), visitors))
        assert all("typed" in one.widgets and not one.errors for one in visitors)
        of = {name: [one for one in visitors if one.replica == name] for name in "ab"}
        assert sum(map(len, of.values())) == VISITORS
        assert all(len(here) > VISITORS // 10 for here in of.values())
        for here in visitors[:4]:
            here.enter("typed", "1.3")
        deployment.replicas["a"].kill()
        deployment.replicas["a"].wait()
        before = {id(one): one.messages for one in of["b"]}
        list(pool.map(lambda one: one.enter("typed", "2.1"), of["b"]))  # the others notice nothing
        assert all(not one.errors and one.messages > before[id(one)] for one in of["b"])
        list(pool.map(Visitor.reconnect, of["a"]))
        list(pool.map(lambda one: one.open(ADDRESS), of["a"]))  # as a browser does, from its address
        assert all("typed" in one.widgets and not one.errors for one in of["a"])


@pytest.mark.slow
def test_what_a_proxy_lets_through(deployment: Deployment) -> None:
    with urllib.request.urlopen(deployment.url + "/") as reply:
        assert re.search(r"attenscope_replica=[ab]; Path=/attenscope; HttpOnly", reply.headers["Set-Cookie"])
        assert "frame-ancestors 'self'" in reply.headers["Content-Security-Policy"]
        assert reply.headers["X-Frame-Options"] == "SAMEORIGIN"
        assert reply.headers["Server"] == "nginx"
    with urllib.request.urlopen(deployment.url + "/translation-preview?sentence=") as reply:
        assert reply.status == 204
    for path in ("/_stcore/metrics", "/_stcore/metrics/"):
        assert status(urllib.request.Request(deployment.url + path)) == 404
    large = bytes(66 * 2**20)
    assert status(urllib.request.Request(f"{deployment.url}/_stcore/upload_file/a/b", large, method="PUT")) == 413


def status(request: urllib.request.Request) -> int:
    """What a request is answered with; 413 where the connection ends while a body is sent, as it may then."""
    try:
        with urllib.request.urlopen(request) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code
    except (ConnectionError, urllib.error.URLError):
        return 413
