"""A visitor without a browser, so that hundreds fit one machine.

It speaks to the running app in Streamlit's own messages.
"""

from __future__ import annotations

import time
import urllib.request
from contextlib import ExitStack
from http.cookiejar import CookieJar
from typing import Any, Self

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import connect

LARGEST = 200 * 2**20  # bytes of a message


class Visitor:
    """One session of the app at an address; a context manager, since it holds a connection."""

    def __init__(self, url: str, patience: float = 120.0) -> None:
        self.url, self.patience = url.rstrip("/"), patience
        self.cookies = CookieJar()
        self.widgets: dict[str, str] = {}
        """Id of each widget on the page, by its key."""
        self.states: dict[str, WidgetState] = {}
        self.errors: list[str] = []
        """The exceptions that the page has shown."""
        self.messages = self.bytes = 0
        self._page = ""
        self._fragments: dict[str, str] = {}
        """The part of the page, run alone, in which each widget stands."""
        self._open = ExitStack()
        self._connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def reconnect(self) -> None:
        """Connect anew, as a browser does whose server is gone; the session may be another."""
        self._open.close()
        self.states.clear()
        self._connect()

    def open(self, address: str = "", page: str | None = None) -> float:
        """Ask for the page at a query string, or for another by its name -> seconds until it is complete."""
        if page is None:
            return self._run(ClientState(query_string=address, page_script_hash=self._page))
        self.widgets.clear()
        self.states.clear()
        return self._run(ClientState(query_string=address, page_name=page))

    def enter(self, key: str, text: str) -> float:
        """Write into the widget with a key -> seconds until the page is complete."""
        one = self.widgets[key]
        self.states[one] = WidgetState(id=one, string_value=text)
        state = ClientState(page_script_hash=self._page, fragment_id=self._fragments[one])
        state.widget_states.widgets.extend(self.states.values())
        return self._run(state)

    def _connect(self) -> None:
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        for path in ("/", "/_stcore/health"):
            opener.open(self.url + path, timeout=self.patience).close()
        cookies = {one.name: one.value or "" for one in self.cookies}
        self.replica = cookies.get("attenscope_replica", "")
        connection = connect(
            self.url.replace("http", "ws", 1) + "/_stcore/stream",
            subprotocols=["streamlit", cookies.get("_streamlit_xsrf", "")],  # type: ignore[list-item]
            additional_headers={"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())},
            open_timeout=self.patience,
            max_size=LARGEST,
        )
        self._socket = self._open.enter_context(connection)

    def _run(self, state: ClientState) -> float:
        start = time.perf_counter()
        self._socket.send(BackMsg(rerun_script=state).SerializeToString())
        while True:
            data = self._socket.recv(self.patience)
            assert isinstance(data, bytes)
            self.messages, self.bytes = self.messages + 1, self.bytes + len(data)
            found = ForwardMsg.FromString(data)
            kind = found.WhichOneof("type")
            if kind == "new_session":
                self._page = found.new_session.page_script_hash
            elif kind == "delta":
                self._note(found)
            elif kind == "script_finished":
                return time.perf_counter() - start

    def _note(self, found: ForwardMsg) -> None:
        """Keep what a new element is."""
        if found.delta.WhichOneof("type") != "new_element":
            return
        element = found.delta.new_element
        kind = element.WhichOneof("type") or ""
        one: Any = getattr(element, kind, None)
        if kind == "exception":
            self.errors.append(f"{one.type}: {one.message}")
        name = getattr(one, "id", "")
        if isinstance(name, str) and "-" in name:
            self.widgets[name.rpartition("-")[2]] = name
            self._fragments[name] = found.delta.fragment_id
