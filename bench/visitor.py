"""A visitor without a browser, so that hundreds fit one machine.

It speaks to the running app in Streamlit's own messages.
"""

from __future__ import annotations

import json
import time
import urllib.request
from contextlib import ExitStack
from http.cookiejar import CookieJar
from typing import Any, Self

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Common_pb2 import FileUploaderState, FileURLs, FileURLsRequest, UploadedFileInfo
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
        self._page = self._session = ""
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
        return self._change(WidgetState(id=self.widgets[key], string_value=text))

    def choose_head(self, layer: int, head: int) -> float:
        """Click the tile of a head, counted from 0 -> seconds until the page is complete."""
        tiles = self.widgets["overview"]
        self.states[tiles] = WidgetState(id=tiles, json_value="{}")
        clicked = json.dumps([{"event": "pick", "value": {"layer": layer, "head": head}}])
        event = WidgetState(id=f"$$STREAMLIT_INTERNAL_KEY_{tiles}__events", json_trigger_value=clicked)
        return self._change(event, self._fragments[tiles])

    def upload(self, key: str, name: str, data: bytes) -> float:
        """Put one file into the place with a key -> seconds until the page is complete."""
        start = time.perf_counter()
        request = FileURLsRequest(request_id=name, file_names=[name], session_id=self._session)
        self._socket.send(BackMsg(file_urls_request=request).SerializeToString())
        while (found := self._receive()).WhichOneof("type") != "file_urls_response":
            pass
        urls = found.file_urls_response.file_urls[0]
        self._put(urls, name, data)
        one = self.widgets[key]
        info = UploadedFileInfo(name=name, size=len(data), file_id=urls.file_id, file_urls=urls)
        held = FileUploaderState(uploaded_file_info=[info])
        self._change(WidgetState(id=one, file_uploader_state_value=held))
        return time.perf_counter() - start

    def _put(self, urls: FileURLs, name: str, data: bytes) -> None:
        """Send a file as a form, as browsers do."""
        edge = "attenscope-edge"
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        cookies = {one.name: one.value or "" for one in self.cookies}
        headers = {
            "Content-Type": f"multipart/form-data; boundary={edge}",
            "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items()),
            "X-Xsrftoken": cookies.get("_streamlit_xsrf", ""),
        }
        body = head.encode() + data + f"\r\n--{edge}--\r\n".encode()
        sent = urllib.request.Request(f"{self.url}{urls.upload_url}", body, headers, method="PUT")
        urllib.request.urlopen(sent, timeout=self.patience).close()

    def _change(self, state: WidgetState, fragment: str | None = None) -> float:
        """Send what a widget says now; without a `fragment`, that of the widget, it says so from now on."""
        if fragment is None:
            fragment, self.states[state.id] = self._fragments[state.id], state
        asked = ClientState(page_script_hash=self._page, fragment_id=fragment)
        asked.widget_states.widgets.extend({**self.states, state.id: state}.values())
        return self._run(asked)

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
            found = self._receive()
            kind = found.WhichOneof("type")
            if kind == "new_session":
                self._page = found.new_session.page_script_hash
                self._session = found.new_session.initialize.session_id
            elif kind == "delta":
                self._note(found)
            elif kind == "script_finished" and found.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return time.perf_counter() - start

    def _receive(self) -> ForwardMsg:
        data = self._socket.recv(self.patience)
        assert isinstance(data, bytes)
        self.messages, self.bytes = self.messages + 1, self.bytes + len(data)
        return ForwardMsg.FromString(data)

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
