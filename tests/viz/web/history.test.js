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

  test("what the visitor changes is one", () => {
    act();
    history.replaceState(null, "", "http://here/?sentence=a&layer=3");
    expect(written).toEqual([["push", "http://here/?sentence=a&layer=3"]]);
  });
});
