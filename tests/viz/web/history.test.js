import historySteps from "../../../viz/web/src/shell/history.js";

const AT = "http://here/?sentence=a&layer=2";

describe("after Back, while the run that shows the entry still writes its address", () => {
  let [written, heard] = [[], {}];
  const happen = (name, event) => heard[name].forEach((hear) => hear(event));
  const act = () => happen("click", { isTrusted: true, target: { closest: () => null } });

  beforeEach(() => {
    [written, heard] = [[], {}];
    const note = (how) => (_state, _title, url) => written.push([how, url]);
    vi.stubGlobal("history", { pushState: note("push"), replaceState: note("replace") });
    vi.stubGlobal("location", new URL(AT));
    vi.stubGlobal("document", { querySelector: () => null, documentElement: { dataset: { arrived: "" } } });
    vi.stubGlobal("MutationObserver", class { observe() {} });
    vi.stubGlobal("addEventListener", (name, hear) => (heard[name] ??= []).push(hear));
    Object.assign(historySteps(), { begun: true });
    happen("popstate");
  });

  afterEach(() => vi.unstubAllGlobals());

  test("nothing is written before the visitor acts", () => {
    history.replaceState(null, "", "http://here/?sentence=a&layer=3");
    expect(written).toEqual([]);
  });

  test("a part of it is no step of a visitor who acts", () => {
    act();
    history.replaceState(null, "", "http://here/?sentence=a");
    expect(written).toEqual([]);
  });

  test("a link to another page waits until what stands in a box that was left is sent", () => {
    vi.useFakeTimers();
    vi.stubGlobal("HTMLInputElement", class {});
    vi.stubGlobal("HTMLTextAreaElement", class {});
    const link = { origin: location.origin, pathname: "/heads", click: vi.fn(), closest: () => null };
    const event = { target: { closest: () => link }, preventDefault: vi.fn(), stopImmediatePropagation: vi.fn() };
    happen("focusout", { target: new HTMLTextAreaElement() });
    happen("click", { ...event, isTrusted: true });
    expect(event.preventDefault).toHaveBeenCalledOnce();
    vi.advanceTimersByTime(150);
    expect(link.click).toHaveBeenCalledOnce();
    happen("click", event);
    expect(event.preventDefault).toHaveBeenCalledOnce(); // Now it leads on.
    happen("pointerdown", { target: event.target });
    happen("focusout", { target: new HTMLTextAreaElement() });
    vi.advanceTimersByTime(900); // The page is busy before the click is heard.
    happen("click", { ...event, isTrusted: true });
    expect(event.preventDefault).toHaveBeenCalledTimes(2);
    vi.useRealTimers();
  });

  test("a page that is left while it reads a sentence keeps nothing of the one before", () => {
    act();
    Object.assign(historySteps(), { ofSentence: ["word"] });
    vi.stubGlobal("location", new URL("http://here/?sentence=a&layer=2&word=3"));
    history.replaceState(null, "", "http://here/?sentence=b&layer=2&word=3");
    vi.stubGlobal("location", new URL("http://here/?sentence=b&layer=2&word=3"));
    written = [];
    document.documentElement.dataset.headPicked = "";
    happen("click", { target: { closest: () => ({ origin: location.origin, pathname: "/heads", closest: () => null }) } });
    expect(written).toEqual([["replace", "/?sentence=b"]]);
  });

  test("what the visitor changes is one", () => {
    act();
    history.replaceState(null, "", "http://here/?sentence=a&layer=3");
    expect(written).toEqual([["push", "http://here/?sentence=a&layer=3"]]);
  });
});
